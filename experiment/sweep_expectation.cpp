// SPDX-License-Identifier: Apache-2.0
// A trend is looked at along each line of points that differ in one parameter alone, in the order of its values; replications
// are averaged first.
#include "experiment/sweep_expectation.h"

#include <algorithm>
#include <array>
#include <map>

namespace experiment {
namespace {

using sim::Json;

constexpr std::array<std::string_view, 16> kReserved{
    "verdict",     "as_expected", "point",  "combination", "replication", "seed", "version", "scenario_hash",
    "config_hash", "why",         "wall_s", "sim_time_ns", "and",         "or",   "not",     "floor"};
constexpr std::size_t kShown = 5;

SweepValue number_value(double d) { return value_of(Json(d)); }
SweepValue text_value(const std::string& text) {
  SweepValue v;
  v.kind = SweepValue::Kind::text;
  v.name = text;
  return v;
}

std::optional<std::size_t> parameter_of(const SweepPlan& plan, const std::string& name) {
  for (std::size_t i = 0; i < plan.parameters.size(); ++i)
    if (plan.parameters[i].name == name || plan.parameters[i].paths.front() == name) return i;
  return std::nullopt;
}
std::optional<std::size_t> metric_of(const SweepPlan& plan, const std::string& name) {
  for (std::size_t i = 0; i < plan.metrics.size(); ++i)
    if (plan.metrics[i].name == name) return i;
  return std::nullopt;
}

/// What the names of a condition stand for at one point.
Condition::Lookup lookup_in(const SweepPlan& plan, const SweepRow& row) {
  return [&plan, &row](const std::string& name) -> std::optional<SweepValue> {
    if (const auto i = parameter_of(plan, name)) return plan.points[row.number].values[*i];
    if (name == "verdict") return text_value(row.verdict);
    if (name == "replication") return value_of(Json(row.replication));
    if (name == "sim_time_ns") return row.sim_time_ns ? std::optional(number_value(*row.sim_time_ns)) : std::nullopt;
    const auto m = metric_of(plan, name);
    if (!m || *m >= row.metrics.size() || !row.metrics[*m]) return std::nullopt;
    return number_value(*row.metrics[*m]);
  };
}

std::string place(const SweepPlan& plan, const SweepRow& row) {
  std::string out = "point " + std::to_string(row.number) + " (";
  for (std::size_t i = 0; i < plan.parameters.size(); ++i)
    out += (i == 0 ? "" : ", ") + plan.parameters[i].name + "=" + row.texts[i];
  return out + ")";
}

std::string values_of(const SweepPlan& plan, const SweepRow& row, const Condition& c) {
  std::string out;
  const auto lookup = lookup_in(plan, row);
  for (const Condition::Name& n : c.names())
    if (!parameter_of(plan, n.text)) {
      const auto v = lookup(n.text);
      out += (out.empty() ? ": " : ", ") + n.text + " is " + (v ? v->text() : "missing");
    }
  return out;
}

void note(SweepExpectationResult& r, std::string failure) {
  r.met = false;
  if (r.failures.size() < kShown) r.failures.push_back(std::move(failure));
  else if (r.failures.size() == kShown) r.failures.emplace_back("and more");
}

std::string text_of(const sys::SweepExpectationConfig& e) {
  std::string out = e.holds.text;
  if (!e.metric.empty()) {
    out = e.metric + " is " + std::string(sim::enum_name(*e.trend)) + " along " + e.along;
    if (e.by) out += " by " + Json(*e.by).compact();
  }
  return e.where.empty() ? out : out + ", where " + e.where.text;
}

void evaluate_points(const SweepPlan& plan, const std::vector<const SweepRow*>& rows,
                     const sys::SweepExpectationConfig& e, SweepExpectationResult& out) {
  const Condition holds = Condition::parse(e.holds.text);
  for (const SweepRow* row : rows) {
    ++out.looked_at;
    if (!holds.holds(lookup_in(plan, *row))) note(out, place(plan, *row) + values_of(plan, *row, holds));
  }
}

/// Mean of the replications at one value of the parameter.
struct Mean {
  double sum = 0;
  std::uint64_t n = 0;
  const SweepRow* row = nullptr;
  double value() const { return sum / static_cast<double>(n); }
};

bool follows(sys::Trend trend, double from, double to, double tolerance) {
  const double slack = tolerance * std::max(std::abs(from), std::abs(to));
  switch (trend) {
    case sys::Trend::rising:
      return to > from - slack && (tolerance > 0 || to > from);
    case sys::Trend::falling:
      return to < from + slack && (tolerance > 0 || to < from);
    case sys::Trend::not_rising:
      return to <= from + slack;
    case sys::Trend::not_falling:
      return to >= from - slack;
  }
  return false;
}

void evaluate_line(const SweepPlan& plan, const std::map<std::size_t, Mean>& line, const sys::SweepExpectationConfig& e,
                   SweepExpectationResult& out) {
  const auto shown = [](double v) { return Json(v).compact(); };
  const Mean* before = nullptr;
  for (const auto& [index, mean] : line) {
    if (before != nullptr) {
      ++out.looked_at;
      if (!follows(*e.trend, before->value(), mean.value(), e.tolerance))
        note(out, "from " + place(plan, *before->row) + " to " + place(plan, *mean.row) + ": " +
                      shown(before->value()) + ", then " + shown(mean.value()));
    }
    before = &mean;
  }
  if (!e.by || line.size() < 2) return;
  const bool down = *e.trend == sys::Trend::falling || *e.trend == sys::Trend::not_rising;
  const Mean &first = line.begin()->second, &last = line.rbegin()->second;
  const double low = down ? last.value() : first.value(), high = down ? first.value() : last.value();
  if (high < low * *e.by)
    note(out, "from " + place(plan, *first.row) + " to " + place(plan, *last.row) + ": " + shown(first.value()) +
                  " becomes " + shown(last.value()) + ", not by " + shown(*e.by));
}

void evaluate_trend(const SweepPlan& plan, const std::vector<const SweepRow*>& rows,
                    const sys::SweepExpectationConfig& e, SweepExpectationResult& out) {
  const std::size_t along = *parameter_of(plan, e.along), metric = *metric_of(plan, e.metric);
  std::map<std::string, std::size_t> order;  // of the values of the parameter
  const SweepValues& values = plan.parameters[along].values;
  for (std::uint64_t i = 0; i < values.size(); ++i) order.emplace(values.at(i).text(), i);
  std::map<std::vector<std::string>, std::map<std::size_t, Mean>> lines;  // by the values of all other parameters
  for (const SweepRow* row : rows) {
    if (metric >= row->metrics.size() || !row->metrics[metric]) {
      note(out, place(plan, *row) + ": " + e.metric + " is missing, verdict " + row->verdict);
      continue;
    }
    std::vector<std::string> others = row->texts;
    others[along].clear();
    Mean& m = lines[others][order.at(row->texts[along])];
    m.sum += *row->metrics[metric];
    ++m.n;
    if (m.row == nullptr) m.row = row;
  }
  for (const auto& [others, line] : lines) evaluate_line(plan, line, e, out);
}

}  // namespace

bool is_reserved(const std::string& name) { return std::ranges::find(kReserved, name) != kReserved.end(); }

void check_expectations(const SweepPlan& plan, sim::ConfigErrors& errors) {
  SweepRow sample;  // of a finished point that has every metric
  sample.verdict = "ok";
  sample.metrics.assign(plan.metrics.size(), 1.0);
  sample.sim_time_ns = 1;
  std::vector<std::string> names{"verdict", "replication", "sim_time_ns"}, parameters, metrics;
  for (const SweepParameter& p : plan.parameters) parameters.push_back(p.name);
  for (const SweepMetric& m : plan.metrics) metrics.push_back(m.name);
  names.insert(names.end(), parameters.begin(), parameters.end());
  names.insert(names.end(), metrics.begin(), metrics.end());
  for (const sys::SweepExpectationConfig& e : plan.expect) {
    for (const sim::Located* text : {&e.where, &e.holds}) {
      if (text->empty()) continue;
      try {
        const Condition c = Condition::parse(text->text);
        bool known = true;
        for (const Condition::Name& n : c.names())
          if (!parameter_of(plan, n.text) && std::ranges::find(names, n.text) == names.end()) {
            known = false;
            errors.add(text->origin, "sweep.expect",
                       "column " + std::to_string(n.column) + ": there is no parameter or metric \"" + n.text + "\"" +
                           sim::did_you_mean(n.text, names));
          }
        if (known && !plan.points.empty()) c.holds(lookup_in(plan, sample));
      } catch (const ConditionError& error) {
        errors.add(text->origin, "sweep.expect", error.what());
      }
    }
    if (e.metric.empty()) continue;
    if (!metric_of(plan, e.metric))
      errors.add(e.origin, "sweep.expect",
                 "there is no metric \"" + e.metric + "\"" + sim::did_you_mean(e.metric, metrics));
    if (!parameter_of(plan, e.along))
      errors.add(e.origin, "sweep.expect",
                 "there is no parameter \"" + e.along + "\"" + sim::did_you_mean(e.along, parameters));
  }
}

std::vector<SweepExpectationResult> evaluate_sweep(const SweepPlan& plan, const std::vector<SweepRow>& rows) {
  std::vector<SweepExpectationResult> out;
  for (const sys::SweepExpectationConfig& e : plan.expect) {
    SweepExpectationResult& r = out.emplace_back();
    r.text = text_of(e);
    r.because = e.because;
    std::vector<const SweepRow*> meant;
    const auto where = e.where.empty() ? std::nullopt : std::optional(Condition::parse(e.where.text));
    for (const SweepRow& row : rows)
      if (!row.verdict.empty() && (!where || where->holds(lookup_in(plan, row)))) meant.push_back(&row);
    if (e.metric.empty()) evaluate_points(plan, meant, e, r);
    else evaluate_trend(plan, meant, e, r);
    if (r.looked_at == 0) note(r, "there is no point to look at");
  }
  return out;
}

}  // namespace experiment
