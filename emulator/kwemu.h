/* The emulator's own functions, beside the driver's and NVRTC's that it stands in for. Plain C; look them up in libkwemu.so. */
#ifndef KWEMU_H
#define KWEMU_H
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* What the detectors found since the last clear, warnings too. A text is several lines: kind, kernel, thread, place, what. It lives
 * until the next clear; NULL when i is out of range. */
int kwemu_report_count(void);
const char* kwemu_report(int i);
void kwemu_clear_reports(void);

/* Sets an option; 0 on success, 1 if there is no such option or value. In the environment the same names with KWEMU_ before them, in
 * capitals (KWEMU_SCHEDULE=shuffle), read when the library is loaded.
 *   schedule     inorder (default) | shuffle | reverse | greedy: which GPU thread goes next
 *   seed         of shuffle and greedy
 *   detect       1 (default) | 0: without races and initialisation; bounds and alignment stay on
 *   strict       1: warnings, and races that store equal values, are errors
 *   formal       1 (default): formal findings (a rule broken that today's hardware forgives) are errors; 0: they are only told
 *   access       1: count what accesses cost (below); 0 (default)
 *   max_reports  errors after which a launch ends (10)
 *   step_limit   observed accesses after which a launch ends (4e9)
 *   stuck_ms     milliseconds of processor time after which a thread that does nothing observable ends the launch (5000)
 *   only_block   run just this block of a grid (its linear index); -1 for all
 *   sample       n: run every n-th block (or cluster) of a grid only
 *   findings     a file that gets every finding as a line of JSON
 *   sms, arch    of the device: multiprocessors (4), compute capability without the point (90) */
int kwemu_set(const char* option, const char* value);

/* Bytes of the allocation that holds `p` which nothing has written since it was allocated or poisoned. */
size_t kwemu_unwritten(const void* p);

/* The access report, counted since the option `access` was set or the last clear. Requests are a warp's executions of one load or store.
 * The strings live until the next launch or clear. Each function gives 0, and writes nothing, when there is no i-th. */
struct kwemu_site {                             /* one load or store of the source, in one kernel */
  const char* kernel;                           /* its expression */
  const char* place;                            /* file:line, innermost first: "load.cuh:20 < row.cuh:81 < kernel.cuh:7" */
  const char* what;                             /* "global load", "shared store", "copy from global", ... */
  unsigned bytes;                               /* of one lane */
  unsigned long long launches, requests, lanes; /* lanes: of all requests together */
  unsigned long long pieces, least;             /* 32-byte sectors, or wavefronts of shared memory; and the fewest that would do */
  unsigned long long dropped;                   /* accesses that were not counted: too many between two barriers */
};
int kwemu_access_site(int i, struct kwemu_site*);

struct kwemu_buffer { /* what one kernel moved from and to one allocation or device variable */
  const char *kernel, *name;
  const void* at;
  unsigned long long size, launches;
  unsigned long long read, read_sectors, written, written_sectors; /* read, written: bytes, a byte once per request */
};
int kwemu_access_buffer(int i, struct kwemu_buffer*);
void kwemu_clear_access(void);

/* A whole CUDA program: its sources (.cu, .cpp, .c) become a shared library at `output`. 0, or 1 with the reasons in `log`: the compiler's
 * words with the user's places, or the name of what is not supported. `sets`: NAME=VALUE, what variables and macros begin with. */
struct kwemu_program {
  const char* const* files;
  const char* const* include_dirs;
  const char* const* defines;
  const char* const* sets;
  int file_count, include_dir_count, define_count, set_count;
  const char* standard; /* "17" when NULL */
};
int kwemu_program_build(const struct kwemu_program*, const char* output, char* log, size_t log_bytes);

/* Loads such a library into this process, once, and calls its main; gives what main returns, 71 if there is none to call. */
int kwemu_program_run(const char* library, int argc, char** argv);

/* Makes a range undefined again: every byte 0xff (NaN in every floating format), never written. */
void kwemu_poison(void* p, size_t bytes);

#ifdef __cplusplus
}
#endif
#endif
