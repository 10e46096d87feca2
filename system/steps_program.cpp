// SPDX-License-Identifier: Apache-2.0
// The steps in order. Each call's result is compared with what the step expects; a difference ends the program, because the
// steps behind it rest on it.
#include "system/steps_program.h"

namespace sys {

StepsProgram::StepsProgram(const std::string& name, const ProgramConfig& config, StepObjects& objects,
                           ProgramsBoard& board, ProgramRecord& record)
    : name_(name), config_(config), objects_(objects), board_(board), record_(record) {}

bool StepsProgram::run() { return run(config_.steps, "programs." + name_ + ".steps"); }

bool StepsProgram::run(const std::vector<StepConfig>& steps, const std::string& path) {
  for (std::size_t i = 0; i < steps.size() && !exited_; ++i) {
    const StepConfig& step = steps[i];
    const std::string here = path + "." + std::to_string(i);
    record_.at = here + " (" + step.action() + ")";
    try {
      for (std::uint64_t n = 0; n < step.times && !exited_; ++n) {
        if (step.loop) {
          if (!repeat(*step.loop, here + ".loop.steps")) return false;
        } else {
          run_one(step);
        }
      }
    } catch (const StepFailed& f) {
      record_.failures.push_back({step.origin.text(), here, std::string(step.action()) + ": " + f.message});
      return false;
    }
  }
  return true;
}

bool StepsProgram::repeat(const LoopStep& loop, const std::string& path) {
  for (std::uint64_t k = 0; k < loop.count.value_or(~0ULL) && !exited_; ++k) {
    if (loop.until_polled && record_.polled >= *loop.until_polled) break;
    if (!run(loop.steps, path)) return false;
  }
  return true;
}

void StepsProgram::run_one(const StepConfig& step) {
  cpu::Thread& thread = cpu::current();
  thread.compute(objects_.process().context->jitter.draw(sim::JitterPlace::step, thread.program_thread().number()));
  const int error = perform(step);
  ++record_.steps;
  if (error == static_cast<int>(step.expect)) return;
  throw StepFailed{"expected " + errno_name(static_cast<int>(step.expect)) + ", got " + errno_name(error)};
}

int StepsProgram::perform(const StepConfig& step) {
  cpu::Thread& thread = cpu::current();
  if (step.post_send) return post_send(*step.post_send);
  if (step.post_recv) return post_recv(*step.post_recv);
  if (step.poll) return poll(*step.poll);
  if (step.arm) return arm(*step.arm);
  if (step.get_event) return get_event(*step.get_event);
  if (step.wait_events) return wait_events(*step.wait_events);
  if (step.address) return change_address(*step.address);
  if (step.ack) return ack(*step.ack);
  if (step.get_async_event) return get_async_event(*step.get_async_event);
  if (step.ack_async_events) return ack_async_events(*step.ack_async_events);
  if (step.modify_qp) return modify_qp(*step.modify_qp);
  if (step.query_qp) return query_qp(*step.query_qp);
  if (step.connect) return connect(objects_, step.connect->qp, IBV_QPS_RESET, step.connect->to);
  if (step.resize_cq) return resize_cq(*step.resize_cq);
  if (step.modify_srq) return modify_srq(*step.modify_srq);
  if (step.query_srq) return query_srq(*step.query_srq);
  if (step.attach_mcast) return mcast(*step.attach_mcast, true);
  if (step.detach_mcast) return mcast(*step.detach_mcast, false);
  if (step.bind_mw) return bind_mw(*step.bind_mw);
  if (step.create) return objects_.create(step.create->text);
  if (step.destroy) return objects_.destroy(step.destroy->text);
  if (step.wait) return wait(*step.wait);
  if (step.sleep) thread.sleep(*step.sleep);
  if (step.compute) thread.compute(*step.compute);
  if (step.meet) board_.meet(step.meet->text);
  if (step.label) board_.set_label(name_, step.label->text);
  if (step.mark) record_.marks[step.mark->text] = thread.now();
  if (step.store) store(*step.store);
  if (step.barrier) thread.barrier(*step.barrier);
  if (step.assertion) check(*step.assertion);
  if (step.kill) board_.kill(step.kill->text);
  if (step.remove_device)
    board_.remove_device(board_.host_named(step.remove_device->host, objects_.host()), step.remove_device->surprise);
  if (step.exit) {
    objects_.process().os.exit_group();
    exited_ = true;
  }
  return 0;
}

}  // namespace sys
