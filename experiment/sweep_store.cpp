// SPDX-License-Identifier: Apache-2.0
// Tables: sweep (facts about the whole), parameter, metric, point, point_value, point_metric, flow, breakdown, quantile; and the
// view `result` with one row per point and a column for each parameter and metric.
#include "experiment/sweep_store.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "experiment/version.h"
#include "sim/config_json.h"

namespace experiment {
namespace fs = std::filesystem;
namespace {

using sim::Json;

constexpr const char* kTables = R"sql(
CREATE TABLE sweep (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE parameter (parameter INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, path TEXT NOT NULL, unit TEXT NOT NULL,
                        numeric INTEGER NOT NULL);
CREATE TABLE metric (metric INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, source TEXT NOT NULL);
CREATE TABLE point (point INTEGER PRIMARY KEY, combination INTEGER NOT NULL, replication INTEGER NOT NULL, seed INTEGER NOT NULL,
                    config_hash TEXT NOT NULL, scenario_hash TEXT NOT NULL,
                    verdict TEXT, as_expected INTEGER, why TEXT, version TEXT, sim_time_ns REAL, wall_s REAL);
CREATE TABLE point_value (point INTEGER NOT NULL REFERENCES point, parameter INTEGER NOT NULL REFERENCES parameter,
                          value REAL, text TEXT NOT NULL, PRIMARY KEY (point, parameter)) WITHOUT ROWID;
CREATE TABLE point_metric (point INTEGER NOT NULL REFERENCES point, metric INTEGER NOT NULL REFERENCES metric,
                           value REAL, PRIMARY KEY (point, metric)) WITHOUT ROWID;
CREATE TABLE flow (point INTEGER NOT NULL REFERENCES point, flow INTEGER NOT NULL, name TEXT NOT NULL, messages INTEGER NOT NULL,
                   mean_ns REAL NOT NULL, PRIMARY KEY (point, flow)) WITHOUT ROWID;
CREATE TABLE breakdown (point INTEGER NOT NULL, flow INTEGER NOT NULL, position INTEGER NOT NULL, stage TEXT NOT NULL,
                        mean_ns REAL NOT NULL, p50_ns REAL NOT NULL, PRIMARY KEY (point, flow, position),
                        FOREIGN KEY (point, flow) REFERENCES flow) WITHOUT ROWID;
CREATE TABLE quantile (point INTEGER NOT NULL, flow INTEGER NOT NULL, share REAL NOT NULL, latency_ns REAL NOT NULL,
                       PRIMARY KEY (point, flow, share), FOREIGN KEY (point, flow) REFERENCES flow) WITHOUT ROWID;
)sql";

std::string identifier(const std::string& name) {
  std::string out = "\"";
  for (const char c : name) out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + "\"";
}

/// One row per point, for people and spreadsheets.
std::string result_view(const SweepPlan& plan) {
  std::string sql = "CREATE VIEW result AS SELECT p.point, p.combination, p.replication, p.seed";
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const bool name = plan.parameters[i].kind == SweepValue::Kind::text ||
                      plan.parameters[i].kind == SweepValue::Kind::boolean ||
                      plan.parameters[i].kind == SweepValue::Kind::json;
    sql += ", (SELECT " + std::string(name ? "text" : "value") +
           " FROM point_value v WHERE v.point = p.point AND v.parameter = " + std::to_string(i) + ") AS " +
           identifier(plan.parameters[i].column());
  }
  sql += ", p.verdict, p.as_expected";
  for (std::size_t i = 0; i < plan.metrics.size(); ++i)
    sql += ", (SELECT value FROM point_metric m WHERE m.point = p.point AND m.metric = " + std::to_string(i) + ") AS " +
           identifier(plan.metrics[i].name);
  return sql + ", p.sim_time_ns, p.wall_s, p.version, p.scenario_hash, p.config_hash, p.why FROM point p";
}

void write_facts(Database& db, const SweepPlan& plan) {
  Statement fact(db, "INSERT INTO sweep VALUES (?, ?)");
  const std::pair<const char*, std::string> facts[] = {
      {"schema", kSweepSchema},
      {"scenario", plan.scenario},
      {"file", plan.file.string()},
      {"description", plan.description},
      {"teaches", plan.teaches},
      {"scenario_hash", plan.scenario_hash},
      {"design", plan.description_json.compact()},
      {"points", std::to_string(plan.points.size())},
      {"config", plan.config.compact()},
      {"version", version()},
  };
  for (const auto& [key, value] : facts) fact.bind(1, std::string_view(key)).bind(2, value).run();
}

void write_columns(Database& db, const SweepPlan& plan) {
  Statement parameter(db, "INSERT INTO parameter VALUES (?, ?, ?, ?, ?)");
  for (std::size_t i = 0; i < plan.parameters.size(); ++i) {
    const SweepParameter& p = plan.parameters[i];
    const bool numeric = p.values.at(0).is_number() && p.kind != SweepValue::Kind::text;
    parameter.bind(1, static_cast<std::int64_t>(i)).bind(2, p.name).bind(3, p.paths.front()).bind(4, unit_of(p.kind));
    parameter.bind(5, std::int64_t{numeric}).run();
  }
  Statement metric(db, "INSERT INTO metric VALUES (?, ?, ?)");
  for (std::size_t i = 0; i < plan.metrics.size(); ++i)
    metric.bind(1, static_cast<std::int64_t>(i)).bind(2, plan.metrics[i].name).bind(3, plan.metrics[i].text()).run();
}

void write_points(Database& db, const SweepPlan& plan) {
  Statement point(db,
                  "INSERT INTO point (point, combination, replication, seed, config_hash, scenario_hash) VALUES (?, ?, "
                  "?, ?, ?, ?)");
  Statement value(db, "INSERT INTO point_value VALUES (?, ?, ?, ?)");
  for (const SweepPoint& p : plan.points) {
    point.bind(1, static_cast<std::int64_t>(p.number)).bind(2, static_cast<std::int64_t>(p.combination));
    point.bind(3, std::int64_t{p.replication}).bind(4, static_cast<std::int64_t>(p.seed)).bind(5, p.config_hash);
    point.bind(6, plan.scenario_hash).run();
    for (std::size_t i = 0; i < p.values.size(); ++i) {
      const SweepValue& v = p.values[i];
      value.bind(1, static_cast<std::int64_t>(p.number)).bind(2, static_cast<std::int64_t>(i));
      value.bind(3, v.is_number() ? std::optional(v.number()) : std::nullopt).bind(4, v.text()).run();
    }
  }
}

void write_all(Database& db, const SweepPlan& plan) {
  Transaction all(db);
  db.execute(kTables);
  write_facts(db, plan);
  write_columns(db, plan);
  write_points(db, plan);
  db.execute(result_view(plan));
  all.commit();
}

void check_sound(Database& db) {
  Statement check(db, "PRAGMA quick_check(1)");
  if (!check.step() || check.text(0) != "ok")
    throw std::runtime_error(db.file().string() + ": it is damaged: " + check.text(0));
}

std::string fact(Database& db, const char* key) {
  Statement s(db, "SELECT value FROM sweep WHERE key = ?");
  s.bind(1, std::string_view(key));
  return s.step() ? s.text(0) : std::string{};
}

/// What of two designs is not the same, one line per difference.
std::string differences(const Json& theirs, const Json& ours) {
  std::string out;
  for (const Json::Member& m : ours.members()) {
    const Json* other = theirs.find(m.key);
    if (other == nullptr || !(*other == m.value))
      out += "\n  " + m.key + ": it has " + (other != nullptr ? other->compact() : "none") + ", this sweep " +
             m.value.compact();
  }
  return out;
}

void check_same(Database& db, const SweepPlan& plan) {
  const std::string at = db.file().string();
  if (const std::string schema = fact(db, "schema"); schema != kSweepSchema)
    throw std::runtime_error(at + ": expected a database of schema " + kSweepSchema + ", got \"" + schema + "\"");
  std::string different;
  if (const std::string s = fact(db, "scenario"); s != plan.scenario)
    different += "\n  scenario: it has " + s + ", this sweep " + plan.scenario;
  if (const std::string h = fact(db, "scenario_hash"); h != plan.scenario_hash) {
    different += "\n  scenario hash: it has " + h + ", this sweep " + plan.scenario_hash;
    sim::ConfigErrors quiet;
    if (const auto config = sim::parse_json(fact(db, "config"), at, quiet))
      for (const Json::Member& m : plan.config.members())
        if (const Json* other = config->find(m.key);
            m.key != "sweep" && m.key != "explore" && (other == nullptr || !(*other == m.value)))
          different += "\n    its \"" + m.key + "\" is another one";
  }
  sim::ConfigErrors quiet;
  const auto design = sim::parse_json(fact(db, "design"), at, quiet);
  different += differences(design ? *design : Json::object(), plan.description_json);
  if (!different.empty())
    throw std::runtime_error(at + ": is of another sweep, so this one cannot go on in it:" + different +
                             "\nTake another --out, or the scenario and options of that sweep.");
}

}  // namespace

DirectoryLock::DirectoryLock(const fs::path& directory) {
  const fs::path file = directory / "sweep.lock";
  fd_ = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0) throw std::runtime_error(file.string() + ": cannot be written: " + std::strerror(errno));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  if (fcntl(fd_, F_SETLK, &lock) == 0) return;
  const int error = errno;
  struct flock holder {};
  holder.l_type = F_WRLCK;
  holder.l_whence = SEEK_SET;
  const bool known = fcntl(fd_, F_GETLK, &holder) == 0 && holder.l_type != F_UNLCK;
  close(fd_);
  if (error != EACCES && error != EAGAIN)
    throw std::runtime_error(file.string() + ": cannot be locked: " + std::strerror(error));
  throw std::runtime_error(directory.string() + ": another sweep is at work in it" +
                           (known ? " (process " + std::to_string(holder.l_pid) + ")" : "") +
                           "; wait for its end or take another --out");
}

DirectoryLock::~DirectoryLock() { close(fd_); }

struct SweepStore::Statements {
  explicit Statements(Database& db)
      : point(db,
              "UPDATE point SET verdict = ?2, as_expected = ?3, why = ?4, version = ?5, sim_time_ns = ?6, wall_s = ?7 "
              "WHERE point = ?1 AND verdict IS NULL"),
        metric(db, "INSERT INTO point_metric VALUES (?, ?, ?)"),
        flow(db, "INSERT INTO flow VALUES (?, ?, ?, ?, ?)"),
        stage(db, "INSERT INTO breakdown VALUES (?, ?, ?, ?, ?, ?)"),
        quantile(db, "INSERT INTO quantile VALUES (?, ?, ?, ?)"),
        changed(db, "SELECT changes()") {}
  Statement point, metric, flow, stage, quantile, changed;
};

bool SweepStore::exists(const fs::path& directory) {
  std::error_code ignore;
  return fs::exists(directory / kSweepDatabase, ignore);
}

SweepStore SweepStore::create(const fs::path& directory, const SweepPlan& plan) {
  const fs::path file = directory / kSweepDatabase;
  try {
    SweepStore store(std::make_unique<Database>(file, Database::Mode::create));
    write_all(*store.db_, plan);
    store.prepare();
    return store;
  } catch (...) {
    for (const char* end : {"", "-wal", "-shm", "-journal"}) {
      std::error_code ignore;
      fs::remove(file.string() + end, ignore);
    }
    throw;
  }
}

SweepStore SweepStore::resume(const fs::path& directory, const SweepPlan& plan) {
  SweepStore store(std::make_unique<Database>(directory / kSweepDatabase, Database::Mode::write));
  Database& db = *store.db_;
  check_sound(db);
  // A sweep that was killed before its first commit leaves an empty database.
  if (Statement any(db, "SELECT 1 FROM sqlite_master"); any.step()) check_same(db, plan);
  else write_all(db, plan);
  store.prepare();
  return store;
}

void SweepStore::prepare() { statements_ = std::make_shared<Statements>(*db_); }

void SweepStore::finish(std::uint64_t number, const SweepSample& s) {
  const auto point = static_cast<std::int64_t>(number);
  std::string why;
  for (const std::string& line : s.why) why += (why.empty() ? "" : "\n") + line;
  Statements& to = *statements_;
  Transaction all(*db_);
  to.point.bind(1, point).bind(2, s.verdict).bind(3, std::int64_t{s.as_expected}).bind(4, why).bind(5, version());
  to.point.bind(6, s.sim_time_ns).bind(7, s.wall_s).run();
  to.changed.step();
  const bool fresh = to.changed.integer(0) == 1;
  to.changed.reset();
  if (!fresh)
    throw std::runtime_error(db_->file().string() + ": point " + std::to_string(number) + " is there already");
  for (std::size_t i = 0; i < s.metrics.size(); ++i)
    to.metric.bind(1, point).bind(2, static_cast<std::int64_t>(i)).bind(3, s.metrics[i]).run();
  for (std::size_t i = 0; i < s.flows.size(); ++i) {
    const SweepSample::Flow& f = s.flows[i];
    const auto flow = static_cast<std::int64_t>(i);
    to.flow.bind(1, point)
        .bind(2, flow)
        .bind(3, f.name)
        .bind(4, static_cast<std::int64_t>(f.messages))
        .bind(5, f.mean_ns)
        .run();
    for (std::size_t k = 0; k < f.stages.size(); ++k) {
      to.stage.bind(1, point).bind(2, flow).bind(3, static_cast<std::int64_t>(k)).bind(4, f.stages[k].name);
      to.stage.bind(5, f.stages[k].mean_ns).bind(6, f.stages[k].p50_ns).run();
    }
    for (const auto& [share, ns] : f.quantiles)
      to.quantile.bind(1, point).bind(2, flow).bind(3, share).bind(4, ns).run();
  }
  all.commit();
}

std::vector<std::uint64_t> SweepStore::unfinished() {
  std::vector<std::uint64_t> out;
  Statement s(*db_, "SELECT point FROM point WHERE verdict IS NULL ORDER BY point");
  while (s.step()) out.push_back(static_cast<std::uint64_t>(s.integer(0)));
  return out;
}

std::vector<std::string> SweepStore::versions() {
  std::vector<std::string> out;
  Statement s(*db_, "SELECT DISTINCT version FROM point WHERE verdict IS NOT NULL ORDER BY version");
  while (s.step()) out.push_back(s.text(0));
  return out;
}

std::vector<SweepRow> SweepStore::rows() {
  std::vector<SweepRow> out;
  const auto real = [](const Statement& s, int c) { return s.is_null(c) ? std::nullopt : std::optional(s.real(c)); };
  Statement points(
      *db_,
      "SELECT point, combination, replication, seed, config_hash, verdict, as_expected, why, version, sim_time_ns, "
      "wall_s FROM point ORDER BY point");
  Statement values(*db_, "SELECT value, text FROM point_value WHERE point = ? ORDER BY parameter");
  Statement metrics(*db_, "SELECT value FROM point_metric WHERE point = ? ORDER BY metric");
  while (points.step()) {
    SweepRow& r = out.emplace_back();
    r.number = static_cast<std::uint64_t>(points.integer(0));
    r.combination = static_cast<std::uint64_t>(points.integer(1));
    r.replication = static_cast<std::uint32_t>(points.integer(2));
    r.seed = static_cast<std::uint64_t>(points.integer(3));
    r.config_hash = points.text(4);
    r.verdict = points.text(5);
    r.as_expected = points.integer(6) != 0;
    r.why = points.text(7);
    r.version = points.text(8);
    r.sim_time_ns = real(points, 9);
    r.wall_s = real(points, 10);
    for (values.bind(1, points.integer(0)); values.step();) {
      r.values.push_back(real(values, 0));
      r.texts.push_back(values.text(1));
    }
    values.reset();
    for (metrics.bind(1, points.integer(0)); metrics.step();) r.metrics.push_back(real(metrics, 0));
    metrics.reset();
  }
  return out;
}

void SweepStore::settle() {
  statements_.reset();
  db_->settle();
}

}  // namespace experiment
