// SPDX-License-Identifier: Apache-2.0
// The common start: every process opens its device and creates its objects; when all have, QPs are connected and address
// handles made; when all are, the steps begin. Objects are destroyed when all have done their last step, as programs that
// meet over TCP before they close. Meetings and labels take no simulated time, like what real programs exchange out of band.
#include "system/programs.h"

#include <algorithm>
#include <set>

namespace sys {
namespace {

// Tags of the meetings around the steps; a tag of a step cannot begin like this.
constexpr const char* kCreated =
    "\x01"
    "created";
constexpr const char* kConnected =
    "\x01"
    "connected";
constexpr const char* kDone =
    "\x01"
    "done";

std::vector<std::uint32_t> gid_indices_of(const ScenarioConfig& scenario) {
  std::set<std::uint32_t> out{3};
  for (const auto& [name, p] : scenario.programs) {
    for (const auto& [qp, c] : p.qp)
      if (c.attr.ah_attr) out.insert(c.attr.ah_attr->sgid_index);
    for (const auto& [ah, c] : p.ah) out.insert(c.attr.sgid_index);
  }
  return {out.begin(), out.end()};
}

const void* object_of(const ibv_async_event& e) {
  switch (e.event_type) {
    case IBV_EVENT_CQ_ERR:
      return e.element.cq;
    case IBV_EVENT_QP_FATAL:
    case IBV_EVENT_QP_REQ_ERR:
    case IBV_EVENT_QP_ACCESS_ERR:
    case IBV_EVENT_COMM_EST:
    case IBV_EVENT_SQ_DRAINED:
    case IBV_EVENT_PATH_MIG:
    case IBV_EVENT_PATH_MIG_ERR:
    case IBV_EVENT_QP_LAST_WQE_REACHED:
      return e.element.qp;
    case IBV_EVENT_SRQ_ERR:
    case IBV_EVENT_SRQ_LIMIT_REACHED:
      return e.element.srq;
    default:
      return nullptr;
  }
}

}  // namespace

Programs::Programs(const ScenarioConfig& scenario, std::vector<std::unique_ptr<Host>>& hosts, std::uint32_t flow,
                   std::vector<AsyncEventRecord>& async_events, std::function<void()> on_first_step)
    : scenario_(scenario),
      hosts_(hosts),
      async_events_(async_events),
      on_first_step_(std::move(on_first_step)),
      gid_indices_(gid_indices_of(scenario)) {
  std::uint32_t n = 0;
  for (const auto& [name, config] : scenario_.programs) {
    names_.push_back(name);
    if (config.thread_of.empty()) create_process(name, config, flow + n);
    ++n;
  }
  for (std::size_t i = 0; i < names_.size(); ++i) create_thread(i);
  for (const char* tag : {kCreated, kConnected, kDone}) meetings_[tag].expected = names_.size();
  for (const auto& [name, config] : scenario_.programs)
    for (const std::string& tag : meeting_tags(config)) ++meetings_[tag].expected;
}

Programs::~Programs() = default;

std::string Programs::name_of(const Process& process, const void* handle) const {
  for (const auto& [name, objects] : objects_)
    if (&objects->process() == &process)
      if (const std::string object = objects->name_at(handle); object != "?") return name + "." + object;
  return {};
}

std::string Programs::place_of(const std::string& program) const {
  for (const auto& r : records_)
    if (r->name == program) return r->at;
  return {};
}

void Programs::create_process(const std::string& name, const ProgramConfig& config, std::uint32_t flow) {
  std::size_t host = 0;
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (scenario_.host_name(i) == config.host) host = i;
  Process& process = hosts_[host]->create_process();
  process.flow = flow;
  objects_[name] = std::make_unique<StepObjects>(name, config, process, *hosts_[host]);
  objects_[name]->set_directory(*this);
  if (config.plugin) plugins_.emplace(name, plugin_path(*config.plugin));
}

// Programs of a host take its cores in turn.
void Programs::create_thread(std::size_t index) {
  const ProgramConfig& config = scenario_.programs.at(names_[index]);
  StepObjects& objects = of(names_[index]);
  std::size_t before = 0;
  for (std::size_t i = 0; i < index; ++i) before += &of(names_[i]).host() == &objects.host();
  auto& record = records_.emplace_back(std::make_unique<ProgramRecord>());
  record->name = names_[index];
  record->host = objects.host().config().name;
  if (config.plugin) record->plugin = config.plugin->file.text;
  threads_.push_back(&objects.host().create_thread(objects.process(), scenario_.workloads.size() + before + config.core,
                                                   names_[index], [this, index] { body(index); }));
}

StepObjects& Programs::of(const std::string& program) {
  const ProgramConfig& c = scenario_.programs.at(program);
  return *objects_.at(c.thread_of.empty() ? program : c.thread_of.text);
}

void Programs::start(sim::Picos t) {
  for (cpu::Thread* thread : threads_) thread->start(t);
}

bool Programs::finished() const {
  return std::ranges::all_of(records_, [](const auto& r) { return r->finished; });
}

bool Programs::failed() const {
  return std::ranges::any_of(records_, [](const auto& r) { return !r->failures.empty(); });
}

sim::Picos Programs::finished_at() const {
  sim::Picos t{0};
  for (const auto& r : records_) t = sim::max(t, r->ended);
  return t;
}

void Programs::body(std::size_t index) {
  try {
    life(index);
  } catch (const cpu::Thread::Killed&) {
    forget(index);
    throw;
  }
}

// The life of one program.
void Programs::life(std::size_t index) {
  const std::string& name = names_[index];
  const ProgramConfig& config = scenario_.programs.at(name);
  ProgramRecord& record = *records_[index];
  StepObjects& objects = of(name);
  prepare(index);
  record.started = cpu::current().now();
  record.cpu.start();
  if (on_first_step_) on_first_step_();
  if (config.plugin) return run_plugin(index);
  StepsProgram program(name, config, objects, *this, record);
  const bool ok = program.run();
  record.cpu.stop();
  record.ended = cpu::current().now();
  record.finished = true;
  if (!ok || program.exited()) return leave();
  record.at = "its end";
  if (config.at_end == AtEnd::exit || !config.thread_of.empty() || objects.process().os.open_files() == 0) {
    leave();
    if (config.at_end == AtEnd::exit && config.thread_of.empty()) objects.process().os.exit();
    return;
  }
  record.finished = false;
  meet(kDone);
  try {
    objects.destroy_all();
  } catch (const StepFailed& f) {
    record.failures.push_back({config.origin.text(), "programs." + name, f.message});
  }
  record.finished = true;
  record.ended = cpu::current().now();
}

// A plug-in and a further thread have nothing to prepare; they begin when all others have.
void Programs::prepare(std::size_t index) {
  const ProgramConfig& config = scenario_.programs.at(names_[index]);
  records_[index]->at = "its preparation";
  if (config.thread_of.empty() && !config.plugin) return set_up(names_[index]);
  meet(kCreated);
  meet(kConnected);
}

void Programs::run_plugin(std::size_t index) {
  const std::string& name = names_[index];
  const PluginConfig& config = *scenario_.programs.at(name).plugin;
  ProgramRecord& record = *records_[index];
  record.at = "main()";
  std::string wrong;
  try {
    record.exit_code = plugins_.at(name).run(name, config.argv);
    if (*record.exit_code != config.exit_code)
      wrong = "ended with " + std::to_string(*record.exit_code) + ", not " + std::to_string(config.exit_code);
  } catch (const std::exception& e) {
    wrong = std::string("ended by an exception: ") + e.what();
  }
  record.cpu.stop();
  of(name).process().os.exit();
  record.ended = cpu::current().now();
  record.finished = true;
  if (!wrong.empty()) record.failures.push_back({config.file.origin.text(), "programs." + name, "main() " + wrong});
  leave();
}

void Programs::set_up(const std::string& name) {
  const ProgramConfig& config = scenario_.programs.at(name);
  StepObjects& objects = of(name);
  try {
    objects.open(gid_indices_);
    if (config.async_events == AsyncEvents::watch) watch_async_events(name);
    objects.create_all(false);
    meet(kCreated);
    objects.create_all(true);
    for (const auto& [qp, c] : config.qp) {
      if (!c.at_start) continue;
      const ibv_qp_state natural = !c.peer.empty() || c.type == IBV_QPT_UD ? IBV_QPS_RTS : IBV_QPS_RESET;
      if (const int e = StepsProgram::connect(objects, {qp}, IBV_QPS_RESET, c.state.value_or(natural)))
        throw StepFailed{"cannot bring QP \"" + qp + "\" to its state: " + errno_name(e)};
    }
    meet(kConnected);
  } catch (const StepFailed& f) {
    throw ProgramFailure(config.origin.text() + ": program \"" + name + "\" on " + objects.host().config().name + ": " +
                         f.message);
  }
}

void Programs::watch_async_events(const std::string& name) {
  StepObjects& objects = of(name);
  Host& host = objects.host();
  cpu::Thread& watcher =
      host.create_thread(objects.process(), host.config().cores - 1, name + ".async", [this, &objects] {
        ibv_async_event e{};
        while (ibv_get_async_event(objects.context(), &e) == 0) {
          note_async_event(objects, e);
          ibv_ack_async_event(&e);
        }
      });
  watcher.start(cpu::current().now());
}

std::string Programs::note_async_event(StepObjects& objects, const ibv_async_event& e) {
  const void* object = object_of(e);
  const std::string name = object != nullptr ? objects.name_at(object) : "";
  const std::string shown = e.event_type == IBV_EVENT_DEVICE_FATAL ? "device"
                            : object == nullptr                    ? "port " + std::to_string(e.element.port_num)
                                                                   : objects.program() + "." + name;
  async_events_.push_back(
      {cpu::current().now(), objects.host().config().name, std::string(sim::enum_name(e.event_type)), shown});
  return name;
}

void Programs::leave() {
  Meeting& m = meetings_.at(kDone);
  --m.expected;
  release_if_complete(m);
}

void Programs::release_if_complete(Meeting& m) {
  if (m.here != m.expected) return;
  m.here = 0;
  for (cpu::Thread* t : std::exchange(m.waiting, {})) t->unpark(cpu::current().now());
}

void Programs::forget(std::size_t index) {
  cpu::Thread* const self = threads_[index];
  ProgramRecord& record = *records_[index];
  record.killed = true;
  record.ended = self->now();
  std::set<std::string> tags = meeting_tags(scenario_.programs.at(names_[index]));
  if (!record.finished) tags.insert(kDone);  // else it has left, or is beyond
  record.finished = true;
  for (auto& [tag, m] : meetings_) {
    m.here -= std::erase(m.waiting, self);
    if (tags.contains(tag)) --m.expected;
    if (tags.contains(tag)) release_if_complete(m);
  }
  for (auto& [name, label] : labels_) std::erase(label.waiting, self);
}

void Programs::kill(const std::string& program) {
  cpu::current().sync();
  of(program).process().os.kill();
}

void Programs::remove_device(Host& host, bool surprise) {
  cpu::current().sync();
  host.remove_device(surprise);
}

Host& Programs::host_named(const std::string& name, Host& fallback) {
  for (std::size_t i = 0; i < hosts_.size(); ++i)
    if (scenario_.host_name(i) == name) return *hosts_[i];
  return fallback;
}

void Programs::meet(const std::string& tag) {
  cpu::Thread& self = cpu::current();
  self.sync();
  Meeting& m = meetings_.at(tag);
  if (++m.here < m.expected) {
    m.waiting.push_back(&self);
    const bool own = tag[0] == '\x01';
    self.park(own ? tag == kDone ? kWaitsForOthers : "the preparation of the other programs"
                  : "the other programs of a meeting");
    return;
  }
  m.here = 0;
  for (cpu::Thread* t : std::exchange(m.waiting, {})) t->unpark(self.now());
}

void Programs::set_label(const std::string& program, const std::string& label) {
  cpu::Thread& self = cpu::current();
  self.sync();
  Label& l = labels_[program + "." + label];
  ++l.times;
  for (cpu::Thread* t : std::exchange(l.waiting, {})) t->unpark(self.now());
}

bool Programs::wait_label(const std::string& label, std::uint64_t times, sim::Picos timeout) {
  cpu::Thread& self = cpu::current();
  self.sync();
  Label& l = labels_[label];
  const sim::Picos deadline = timeout.n == 0 ? sim::kNever : self.now() + timeout;
  while (l.times < times) {
    if (self.now() >= deadline) return false;
    if (timeout.n != 0) {
      self.sleep(sim::max(sim::Picos{200'000}, sim::Picos{timeout.n / 10'000}));
      continue;
    }
    l.waiting.push_back(&self);
    self.park("a label of another program");
  }
  return true;
}

}  // namespace sys
