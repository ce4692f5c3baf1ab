// GPU threads as hand-made fibers (a switch is 5 ns, ucontext takes 300 with its system call), and the way out of a kernel that faults.
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>

#include "emulator/engine/report.h"

#ifndef __x86_64__
#error "the emulator's fibers are written for x86-64"
#endif

// Ends in a jump, not a return: the return predictor would miss every time.
asm(R"(
.text
.globl kwemu_switch
.hidden kwemu_switch
.type kwemu_switch,@function
kwemu_switch:
  pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15
  movq %rsp,(%rdi)
  movq %rsi,%rsp
  popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp
  popq %rdx
  jmpq *%rdx
.size kwemu_switch,.-kwemu_switch
)");

namespace kwemu {
__attribute__((init_priority(101))) Engine engine;  // before whoever reads the environment into it
Thread* current = nullptr;
}  // namespace kwemu
extern "C" __attribute__((visibility("default"))) kwemu_registers kwemu_regs;
kwemu_registers kwemu_regs;

namespace kwemu {
namespace {
void fiber_main() {
  void** args = engine.args;
  if (engine.argument_bytes) args = (void**)memcpy(__builtin_alloca_with_align(engine.argument_bytes, 512), args, engine.argument_bytes);
  engine.kernel->entry->run(args);
  finish_thread();
  to_scheduler();
  __builtin_unreachable();
}
}  // namespace

void resume(Thread* t) {
  current = t;
  engine.switches++;
  kwemu_regs.tx = t->x;
  kwemu_regs.ty = t->y;
  kwemu_regs.tz = t->z;
  kwemu_regs.lane = t->lane;
  kwemu_switch(&engine.main_sp, t->sp);
  current = nullptr;
}

void prepare_fiber(Thread* t, u32 index) {
  t->stack = engine.stacks + (size_t)index * kStackBytes;
  // The tops are spread over cache sets: equal tops made 32 lanes fight for the same one.
  u64* top = (u64*)(t->stack + kStackBytes - 64 - (index & 31) * size_t{128});
  *--top = 0;  // the fiber's function starts as if called
  *--top = (u64)fiber_main;
  for (int i = 0; i < 6; i++) *--top = 0;
  t->sp = top;
}

bool reserve_stacks(size_t count) {
  if (engine.stack_count >= count) return true;
  if (engine.stacks) munmap(engine.stacks, engine.stack_count * kStackBytes);
  engine.stack_count = 0;
  count = std::max<size_t>(1024, count);
  void* p = mmap(nullptr, count * kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  engine.stacks = p == MAP_FAILED ? nullptr : (char*)p;
  if (!engine.stacks) return false;
  for (size_t i = 0; i < count; i++) mprotect(engine.stacks + i * kStackBytes, 4096, PROT_NONE);
  engine.stack_count = count;
  return true;
}

void stop_launch() {
  engine.stopped = true;
  to_scheduler();
  __builtin_unreachable();
}

// ---- faults and endless loops -------------------------------------------------------------------------------------------------
namespace {
constexpr int kSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
constexpr long kTickMs = 50;
struct sigaction old_actions[3], old_tick;
stack_t old_stack;
alignas(64) char signal_stack[64 * 1024], escape_stack[256 * 1024];
timer_t ticker;
bool ticking = false;
pid_t launching_thread = 0;
u64 last_steps = 0, stuck = 0;
// what the handler saw, for escape() to report
int fault_signal;
void* fault_address;
void* fault_pc;

int tick_signal() { return SIGRTMIN + 3; }

// Runs on a stack of its own, in the place of the kernel code that was interrupted.
[[noreturn]] void escape() {
  if (fault_signal == SIGFPE)
    report("div-by-zero", fault_pc, "integer division by zero");
  else if (fault_signal == tick_signal())
    report("endless-loop", fault_pc, "%s ran %llu ms without touching memory or reaching a barrier", name_of(current).c_str(),
           (unsigned long long)engine.options.stuck_ms);
  else if ((u64)fault_address - (u64)current->stack < 4096)
    report("stack-overflow", fault_pc, "the local memory of a thread exceeds %zu KiB", kStackBytes / 1024);
  else
    report("wild-pointer", fault_pc, "access to %p", fault_address);
  stop_launch();
}

void redirect(ucontext_t* context, int number, void* address) {
  fault_signal = number;
  fault_address = address;
  fault_pc = (void*)(context->uc_mcontext.gregs[REG_RIP] + 1);  // places are return addresses
  context->uc_mcontext.gregs[REG_RSP] = (greg_t)(((u64)escape_stack + sizeof escape_stack - 64) & ~15ull) - 8;
  context->uc_mcontext.gregs[REG_RIP] = (greg_t)&escape;
}

void on_fault(int number, siginfo_t* info, void* context) {
  if (!current || syscall(SYS_gettid) != launching_thread) {  // not ours: as if we had never been here
    for (int i = 0; i < 3; i++)
      if (kSignals[i] == number) sigaction(number, &old_actions[i], nullptr);
    return;
  }
  redirect((ucontext_t*)context, number, info->si_addr);
}

void on_tick(int number, siginfo_t*, void* context) {
  if (!current || syscall(SYS_gettid) != launching_thread) return;
  u64 now = engine.steps + engine.switches;
  stuck = now == last_steps ? stuck + kTickMs : 0;
  last_steps = now;
  u64 pc = (u64)((ucontext_t*)context)->uc_mcontext.gregs[REG_RIP];
  bool in_kernel = pc >= engine.module->lo && pc < engine.module->hi;  // elsewhere a lock may be held
  if (stuck >= engine.options.stuck_ms && in_kernel) redirect((ucontext_t*)context, number, nullptr);
}
}  // namespace

SignalGuard::SignalGuard() {
  launching_thread = (pid_t)syscall(SYS_gettid);
  stack_t stack = {};
  stack.ss_sp = signal_stack;
  stack.ss_size = sizeof signal_stack;
  sigaltstack(&stack, &old_stack);
  struct sigaction action = {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  for (int i = 0; i < 3; i++) sigaction(kSignals[i], &action, &old_actions[i]);
  action.sa_sigaction = on_tick;
  action.sa_flags |= SA_RESTART;
  sigaction(tick_signal(), &action, &old_tick);
  stuck = 0;
  struct sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = tick_signal();
  event._sigev_un._tid = launching_thread;
  ticking = timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &ticker) == 0;
  if (ticking) {
    struct itimerspec every = {{0, kTickMs * 1000000}, {0, kTickMs * 1000000}};
    timer_settime(ticker, 0, &every, nullptr);
  }
}
SignalGuard::~SignalGuard() {
  if (ticking) timer_delete(ticker);
  // A tick may still be on its way, and its default action would end the process: deliver it while the handler is ours.
  struct timespec none = {};
  sigset_t ours, before;
  sigemptyset(&ours);
  sigaddset(&ours, tick_signal());
  pthread_sigmask(SIG_BLOCK, &ours, &before);
  while (sigtimedwait(&ours, nullptr, &none) > 0) {
  }
  sigaction(tick_signal(), &old_tick, nullptr);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  for (int i = 0; i < 3; i++) sigaction(kSignals[i], &old_actions[i], nullptr);
  sigaltstack(&old_stack, nullptr);
}
}  // namespace kwemu
