// SPDX-License-Identifier: Apache-2.0
// Memory, device and lock operations of a thread. Its local clock runs ahead of the engine's between calls of sync();
// what it does carries absolute times, so the outside world sees it at the right moment.
// Not modelled: instruction fetch, TLB misses, the store to the lock word itself.
#include "cpu/thread.h"

#include <algorithm>

#include "cpu/core.h"
#include "cpu/trace_points.h"

namespace cpu {
namespace {
constexpr std::uint64_t kLine = 64;

// What lets current() find its thread: the one piece of global state of the models. There is one engine per process.
struct Registry {
  const sim::Engine* engine = nullptr;
  std::vector<Thread*> by_number;
};
Registry& registry() {
  static Registry r;
  return r;
}

// Threads of the kernel have their host in their name.
std::string lane(std::int32_t host, std::string_view name) {
  const std::string prefix = "host" + std::to_string(host) + ".";
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  return prefix + "thread." + std::string(name);
}
}  // namespace

Thread* current_or_null() {
  const Registry& r = registry();
  const sim::ProgramThread* const running = r.engine != nullptr ? r.engine->running() : nullptr;
  return running != nullptr && running->number() < r.by_number.size() ? r.by_number[running->number()] : nullptr;
}

Thread& current() {
  Thread* const t = current_or_null();
  SIM_CHECK(t != nullptr, "a call that only a simulated program may make");
  return *t;
}

Thread::Thread(Core& core, sim::Engine& engine, memory::AddressSpace& space, std::string name, std::uint32_t number,
               std::function<void()> body)
    : core_(core),
      space_(space),
      trace_(core.context(), core.host(), lane(core.host(), name), sim::trace::TrackKind::exclusive),
      state_trace_(core.context(), core.host(), lane(core.host(), name) + ".state", sim::trace::TrackKind::state,
                   {"ended", "running", "asleep", "polling"}),
      thread_(engine.spawn(std::move(name), number, [this, program = std::move(body)] { run(program); })) {
  Registry& r = registry();
  r.engine = &engine;
  if (r.by_number.size() <= number) r.by_number.resize(number + 1);
  SIM_CHECK(r.by_number[number] == nullptr, "two threads with one number");
  r.by_number[number] = this;
  core_.threads_.push_back(this);
}

Thread::~Thread() {
  Registry& r = registry();
  r.by_number[thread_.number()] = nullptr;
  if (std::all_of(r.by_number.begin(), r.by_number.end(), [](const Thread* t) { return t == nullptr; })) r = {};
  std::erase(core_.threads_, this);
}

void Thread::start(sim::Picos t) { thread_.start(t); }

void Thread::run(const std::function<void()>& body) {
  ++in_kernel_;  // it is born there: one that is killed before it starts dies in its body
  leave_blocked();
  --in_kernel_;
  asleep_ = sim::Picos{0};
  try {
    body();
    sync();  // the program ends at its own time
  } catch (const Killed&) {
  } catch (...) {
    state_ = State::idle;
    throw;
  }
  state_ = State::idle;
  blocked_from_ = thread_.now();
  trace_state(State::idle, thread_.now());
}

void Thread::trace_state(State s, sim::Picos t) {
  state_trace_.state(points::thread_state, t, static_cast<std::uint32_t>(s));
}

void Thread::store(void* dst, const void* src, std::size_t n) {
  const memory::Va va = memory::va_of(dst);
  thread_.charge(core_.config().store_cost);
  if ((va.v & (kLine - 1)) + n <= kLine) [[likely]]
    advance_to(core_.store(space_.phys_of(va), src, n, cause_, thread_.now()));
  else store_across_lines(static_cast<const std::byte*>(dst), static_cast<const std::byte*>(src), n);
}

void Thread::store_across_lines(const std::byte* dst, const std::byte* src, std::size_t n) {
  SIM_CHECK(n <= kLine, "one store has at most 64 bytes");
  const std::size_t first = kLine - (memory::va_of(dst).v & (kLine - 1));
  advance_to(core_.store(space_.phys_of(memory::va_of(dst)), src, first, cause_, thread_.now()));
  advance_to(core_.store(space_.phys_of(memory::va_of(dst + first)), src + first, n - first, cause_, thread_.now()));
}

void Thread::load(const void* src, void* dst, std::size_t n) {
  SIM_CHECK(n <= kLine, "one load has at most 64 bytes");
  memory::HostMemory& memory = core_.memory();
  memory.commit_pending();
  memory::copy_line(static_cast<std::byte*>(dst), src, n);
  sim::Picos cost = core_.config().load_cost;
  auto* at = static_cast<const std::byte*>(src);
  auto* to = static_cast<std::byte*>(dst);
  while (n != 0) {
    const memory::Va va = memory::va_of(at);
    const std::size_t part = std::min<std::size_t>(n, memory::kPageSize - va.offset());
    const memory::Phys phys = space_.phys_of(va);
    if (!memory.cpu_cached(core_.index(), phys, part)) cost = sim::max(cost, memory.cpu_load_latency(phys, part));
    core_.store_buffer().forward(phys, to, part);
    at += part;
    to += part;
    n -= part;
  }
  thread_.charge(cost);
}

void Thread::copy(void* dst, const void* src, std::size_t n) {
  core_.memory().commit_pending();
  auto* to = static_cast<std::byte*>(dst);
  auto* from = static_cast<const std::byte*>(src);
  const bool from_arena = space_.owns(src), to_arena = space_.owns(dst);
  while (n != 0) {
    const std::size_t part = std::min<std::size_t>(n, kLine - (memory::va_of(to).v & (kLine - 1)));
    std::byte line[kLine];
    std::memcpy(line, from, part);
    if (from_arena) {
      const std::size_t in_page = std::min<std::size_t>(part, memory::kPageSize - memory::va_of(from).offset());
      core_.store_buffer().forward(space_.phys_of(memory::va_of(from)), line, in_page);
      if (in_page != part)
        core_.store_buffer().forward(space_.phys_of(memory::va_of(from + in_page)), line + in_page, part - in_page);
    }
    thread_.charge(core_.config().copy_line_cost);
    if (to_arena) advance_to(core_.store(space_.phys_of(memory::va_of(to)), line, part, cause_, thread_.now()));
    else std::memcpy(to, line, part);
    to += part;
    from += part;
    n -= part;
  }
}

void Thread::mmio_store(memory::Va at, std::span<const std::byte> bytes) {
  const auto to = space_.translate(at);
  SIM_CHECK(to && to->mmio && at.v % bytes.size() == 0, "MMIO store to an address that is no aligned device register");
  advance_to(core_.mmio_store(*to, bytes, cause_, thread_.now()));
}

void Thread::mmio_store64(memory::Va at, std::uint64_t value) { mmio_store(at, std::as_bytes(std::span(&value, 1))); }
void Thread::mmio_store32(memory::Va at, std::uint32_t value) { mmio_store(at, std::as_bytes(std::span(&value, 1))); }

std::uint64_t Thread::mmio_load(memory::Va at, unsigned size) {
  const auto from = space_.translate(at);
  SIM_CHECK(from && from->mmio && at.v % size == 0, "MMIO load from an address that is no aligned device register");
  const sim::Picos begin = thread_.now();
  advance_to(core_.before_mmio_load(begin));
  sync();
  struct Reply {
    Thread* thread;
    std::uint64_t value = 0;
    bool here = false;
  } reply{this};
  core_.mmio->mmio_read(
      from->phys, size,
      [](void* ctx, std::uint64_t value) {
        auto* r = static_cast<Reply*>(ctx);
        r->value = value;
        r->here = true;
        r->thread->thread_.unpark(r->thread->core_.context().now());
      },
      &reply);
  thread_.set_wait_reason("load from a device");
  while (!reply.here) thread_.park();
  thread_.set_wait_reason("");
  sync();
  core_.trace().span(points::mmio_load, cause_, begin, begin, thread_.now(), from->phys.v, reply.value);
  return reply.value;
}

std::uint64_t Thread::mmio_load64(memory::Va at) { return mmio_load(at, 8); }
std::uint32_t Thread::mmio_load32(memory::Va at) { return static_cast<std::uint32_t>(mmio_load(at, 4)); }

void Thread::barrier(Barrier b) { advance_to(core_.barrier(b, cause_, thread_.now())); }

// A lock that only one thread uses needs no look at the others' time.
void Thread::lock(SpinLock& l, bool wc) {
  advance_to(core_.locked(thread_.now()));
  if (l.owner != nullptr && l.owner != this) sync();
  if (l.held) {
    SIM_CHECK(l.owner != this, "thread " + name() + " waits for a spin lock that it holds itself");
    Thread** tail = &l.first_waiter;
    while (*tail != nullptr) tail = &(*tail)->next_waiter_;
    *tail = this;
    next_waiter_ = nullptr;
    spin_from_ = thread_.now();
    thread_.set_wait_reason("spin lock");
    while (l.owner != this) {
      thread_.park();
      die_if_killed();
    }
    thread_.set_wait_reason("");
    sync();
  } else {
    // Released at a time that the releasing thread had reached and this one has not.
    const sim::Picos turn = sim::max(core_.config().lock_cost, sim::Picos{1});
    if (l.released > thread_.now()) thread_.charge(turn * ((l.released - thread_.now() + turn - sim::Picos{1}) / turn));
    l.held = true;
    l.owner = this;
  }
  if (wc) barrier(Barrier::mmio_wc_spinlock);
}

void Thread::unlock(SpinLock& l) {
  SIM_CHECK(l.held && l.owner == this, "unlock of a spin lock that the thread does not hold");
  thread_.charge(core_.config().store_cost);
  l.released = thread_.now();
  Thread* const next = l.first_waiter;
  if (next == nullptr) {
    l.held = false;
    return;
  }
  l.first_waiter = next->next_waiter_;
  l.owner = next;
  const sim::Picos turn = sim::max(next->core_.config().lock_cost, sim::Picos{1});
  const sim::Picos waited = sim::max(l.released - next->spin_from_, sim::Picos{0});
  next->thread_.unpark(next->spin_from_ + turn * ((waited + turn - sim::Picos{1}) / turn));
}

}  // namespace cpu
