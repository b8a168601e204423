/* Clears the table macros of messages.def between passes; no guard. */
#undef MSG_BEGIN
#undef MSG_END
#undef FIELD_U64
#undef FIELD_STR
#undef FIELD_BIN
