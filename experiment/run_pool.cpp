// SPDX-License-Identifier: Apache-2.0
// A child runs one scenario and returns its outcome as JSON.
#include "experiment/run_pool.h"

#include <utility>

#include "experiment/process_pool.h"
#include "experiment/scenario.h"
#include "sim/check.h"
#include "sim/config_json.h"

namespace experiment {

RunOutcome outcome_of(const Result& r) {
  RunOutcome o;
  o.outcome = name_of(r.verdict);
  if (r.verdict == Verdict::ok && !r.expectations_met()) o.outcome = "unmet";
  o.good = exit_code(r) == 0;
  for (const auto& p : r.programs)
    for (const auto& f : p.failures) o.why.push_back(f.at + ": " + f.step + ": " + f.message);
  for (const auto& e : r.expectations)
    if (!e.met) o.why.push_back(e.at + ": expected " + e.expected + ", got " + e.actual);
  o.why.insert(o.why.end(), r.outstanding.begin(), r.outstanding.end());
  return o;
}

RunOutcome outcome_of_failure(std::exception_ptr failure) {
  try {
    std::rethrow_exception(std::move(failure));
  } catch (const sim::ConfigFailure& e) {
    return {"refused", false, {e.what()}};
  } catch (const sim::SimulatorBug& e) {
    return {"bug", false, {e.what()}};
  } catch (const std::exception& e) {
    return {"failed", false, {e.what()}};
  }
}

namespace {

RunOutcome run_one(const std::filesystem::path& file, const sys::Overrides& overrides) {
  try {
    const Scenario s = load_scenario(file, overrides);
    return outcome_of(run(run_options(s), machine_factory(s)));
  } catch (...) {
    return outcome_of_failure(std::current_exception());
  }
}

std::string to_text(const RunOutcome& o) {
  sim::Json j = sim::Json::object();
  j["outcome"] = o.outcome;
  j["good"] = o.good;
  sim::Json& why = j["why"] = sim::Json::array();
  for (const std::string& line : o.why) why.push_back(line);
  return j.compact();
}

/// What a child said, or how it died without a word.
RunOutcome from_end(const JobEnd& end) {
  if (!end.finished()) return {"crashed", false, {"the simulator was ended by " + end.how()}};
  sim::ConfigErrors errors;
  const auto j = sim::parse_json(end.text, "run", errors);
  if (!j || j->find("outcome") == nullptr) return {"crashed", false, {"the simulator ended without a result"}};
  RunOutcome o{j->find("outcome")->string(), j->find("good")->boolean(), {}};
  for (const sim::Json& line : j->find("why")->items()) o.why.push_back(line.string());
  return o;
}

}  // namespace

std::vector<RunOutcome> run_all(const std::filesystem::path& file, const std::vector<sys::Overrides>& runs,
                                unsigned jobs, const std::function<void(std::size_t)>& progress, bool& interrupted) {
  std::vector<RunOutcome> out(runs.size());
  std::size_t next = 0, ended = 0;
  JobPool pool;
  pool.jobs = jobs;
  pool.next = [&] { return next < runs.size() ? std::optional(next++) : std::nullopt; };
  pool.work = [&](std::size_t i) { return to_text(run_one(file, runs[i])); };
  pool.ended = [&](const JobEnd& end) {
    out[end.job] = from_end(end);
    if (progress) progress(++ended);
  };
  interrupted = run_jobs(pool);
  return out;
}

}  // namespace experiment
