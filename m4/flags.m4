# Compiler and linker flags: probed one by one, because gcc 12 and clang 14
# each lack some. The lists are CONVENTIONS.md, "Build and checks".

# STOCKADE_PROBE(KIND, VARIABLE, FLAG...)
# Adds each flag that the compiler takes without a warning. KIND is compile or
# link. The loop is the shell's: m4 would split -Wl,-z,now at its commas.
AC_DEFUN([STOCKADE_PROBE], [
for flag in $3; do
	AC_MSG_CHECKING([whether $CC takes $flag])
	saved_CFLAGS=$CFLAGS
	saved_LDFLAGS=$LDFLAGS
	CFLAGS="$CFLAGS -Werror $flag"
	m4_if([$1], [link], [LDFLAGS="$LDFLAGS $flag"])
	m4_if([$1], [link], [AC_LINK_IFELSE], [AC_COMPILE_IFELSE])(
		[AC_LANG_PROGRAM([[#include <string.h>]],
			[[char b[16]; return (int)strlen(memset(b, 0, 16));]])],
		[AC_MSG_RESULT([yes])
		probe_ok=yes],
		[AC_MSG_RESULT([no])
		probe_ok=no])
	CFLAGS=$saved_CFLAGS
	LDFLAGS=$saved_LDFLAGS
	AS_IF([test $probe_ok = yes], [AS_VAR_APPEND([$2], [" $flag"])])
done
])

# STOCKADE_FLAGS
# Sets STD_CPPFLAGS, HARDEN_CPPFLAGS, HARDEN_CFLAGS, HARDEN_LDFLAGS,
# WARN_CFLAGS, SANITIZE_CFLAGS, STATIC_LDFLAGS and FUZZ_LDFLAGS.
AC_DEFUN([STOCKADE_FLAGS], [
AC_LANG_PUSH([C])
HARDEN_CPPFLAGS= HARDEN_CFLAGS= HARDEN_LDFLAGS=
WARN_CFLAGS= SANITIZE_CFLAGS= FUZZ_LDFLAGS=
STD_CPPFLAGS="-D_GNU_SOURCE -D_FILE_OFFSET_BITS=64"
STOCKADE_PROBE([compile], [WARN_CFLAGS], [-std=c11])

AS_IF([test "x$enable_fuzzing" = xyes],
	[AS_IF([test "x$enable_sanitizers" = xno],
		[enable_sanitizers=address,undefined])])

AS_IF([test "x$enable_sanitizers" != xno], [
	AC_DEFINE([ENABLE_SANITIZERS], [1], [Built with sanitizers: seccomp
		profiles then permit what their run-time library calls.])
	SANITIZE_CFLAGS="-fsanitize=$enable_sanitizers -fno-sanitize-recover=all -fno-omit-frame-pointer -g"
])
AS_IF([test "x$enable_fuzzing" = xyes], [
	FUZZ_LDFLAGS="-fsanitize=fuzzer"
	AS_VAR_APPEND([SANITIZE_CFLAGS], [" -fsanitize=fuzzer-no-link"])
	saved_CFLAGS=$CFLAGS
	CFLAGS="$CFLAGS -fsanitize=fuzzer"
	AC_LINK_IFELSE([AC_LANG_SOURCE([[
		#include <stddef.h>
		#include <stdint.h>
		int LLVMFuzzerTestOneInput(const uint8_t *, size_t);
		int
		LLVMFuzzerTestOneInput(const uint8_t *b, size_t n)
		{
			return (b == NULL && n != 0);
		}]])], [],
		[AC_MSG_ERROR([--enable-fuzzing needs libFuzzer: CC=clang])])
	CFLAGS=$saved_CFLAGS
])
AM_CONDITIONAL([FUZZING], [test "x$enable_fuzzing" = xyes])
AM_CONDITIONAL([SANITIZING], [test "x$enable_sanitizers" != xno])

AS_IF([test "x$enable_hardening" != xno], [
	# The sanitizers replace the fortified functions, and a static
	# position-independent program cannot be had with them.
	AS_IF([test "x$enable_sanitizers" = xno], [
		STOCKADE_PROBE([compile], [HARDEN_CPPFLAGS],
			["-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3"])
		AS_IF([test -z "$HARDEN_CPPFLAGS"],
			[STOCKADE_PROBE([compile], [HARDEN_CPPFLAGS],
				["-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2"])])
	])
	STOCKADE_PROBE([compile], [HARDEN_CFLAGS], [dnl
		-fstack-protector-strong -fstack-clash-protection dnl
		-fcf-protection=full -ftrivial-auto-var-init=zero dnl
		-fzero-call-used-regs=used-gpr -fstrict-flex-arrays=3 dnl
		-fno-delete-null-pointer-checks -fno-strict-overflow dnl
		-fno-common -fvisibility=hidden -fPIE])
	STOCKADE_PROBE([link], [HARDEN_LDFLAGS], [dnl
		-Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack dnl
		-Wl,-z,separate-code -Wl,--as-needed])
	AC_DEFINE([ENABLE_HARDENING], [1], [Built with hardening flags.])
])

STOCKADE_PROBE([compile], [WARN_CFLAGS], [dnl
	-Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wcast-qual dnl
	-Wcast-align=strict -Wpointer-arith -Wstrict-prototypes dnl
	-Wmissing-prototypes -Wwrite-strings -Wformat=2 -Wundef -Wvla dnl
	-Wswitch-enum -Wimplicit-fallthrough -Wnull-dereference dnl
	-Wlogical-op -Wduplicated-cond -Wduplicated-branches dnl
	-Wjump-misses-init])
# What bison generates is not ours to change: the plain warnings only.
GENERATED_CFLAGS=
STOCKADE_PROBE([compile], [GENERATED_CFLAGS], [dnl
	-Wno-conversion -Wno-sign-conversion -Wno-switch-enum -Wno-undef dnl
	-Wno-null-dereference -Wno-duplicated-branches dnl
	-Wno-unused-but-set-variable -Wno-cast-qual])
# clang ignores unknown -Wno-… in silence or not, by version: harmless.
AS_IF([test "x$enable_werror" = xyes], [AS_VAR_APPEND([WARN_CFLAGS],
	[" -Werror"])])

# Static programs (stockade-init, stockade-connect): position independent
# where the C library has the start file for it. A sanitizer's run-time
# library cannot be linked statically, so that build links them dynamically.
STATIC_LDFLAGS=
AS_IF([test "x$enable_sanitizers" = xno], [
	AS_IF([test "x$enable_hardening" != xno], [
		saved_CFLAGS=$CFLAGS
		CFLAGS="$CFLAGS -fPIE"
		STOCKADE_PROBE([link], [STATIC_LDFLAGS], [-static-pie])
		CFLAGS=$saved_CFLAGS
	])
	AS_IF([test -z "$STATIC_LDFLAGS"], [STATIC_LDFLAGS=" -static"])
])
AS_VAR_APPEND([STATIC_LDFLAGS], ["$HARDEN_LDFLAGS"])
AS_IF([test "x$enable_hardening" != xno],
	[STOCKADE_PROBE([link], [PIE_LDFLAGS], [-pie])])
AS_VAR_APPEND([HARDEN_LDFLAGS], ["$PIE_LDFLAGS"])
AS_IF([test "x$enable_sanitizers" != xno],
	[AS_VAR_APPEND([STATIC_LDFLAGS], ["$PIE_LDFLAGS"])])

AC_SUBST([STD_CPPFLAGS])
AC_SUBST([HARDEN_CPPFLAGS])
AC_SUBST([HARDEN_CFLAGS])
AC_SUBST([HARDEN_LDFLAGS])
AC_SUBST([WARN_CFLAGS])
AC_SUBST([GENERATED_CFLAGS])
AC_SUBST([SANITIZE_CFLAGS])
AC_SUBST([STATIC_LDFLAGS])
AC_SUBST([FUZZ_LDFLAGS])
AC_LANG_POP([C])
])
