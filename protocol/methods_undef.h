/* Clears the table macros of methods.def between passes; no guard. */
#undef METHOD_BEGIN
#undef PARAM
#undef RESULT
#undef METHOD_END
#undef EVENT_BEGIN
#undef FIELD
#undef EVENT_END
