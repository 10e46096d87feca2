# SPDX-License-Identifier: Apache-2.0
"""The report of a sweep."""
import distributions
import findings
from lines import cut as cut_of
from lines import spread
from line_plots import cloud, line_plot
from maps import heat_map
from metrics import in_order
from model import ReportError, parameter_text
from page import Cell, Report, Section, Table, number_cell
from svg import slug
from units import short

MOST_PLOTTED = 8  # metrics, unless --metric names them
MOST_CLOUDS = 4  # parameters of a random design


def build(study, wanted_x, wanted_metrics):
    metrics = _chosen(study, wanted_metrics)
    cut = cut_of(study, wanted_x)
    grid = study.is_grid
    sections = [
        _map(study, cut, grid),
        _along(study, cut, metrics) if grid else _clouds(study, metrics),
        _heat(study, cut, metrics, grid),
        _messages(study, cut),
        _expectations(study),
        _combinations(study),
        _points(study),
    ]
    verdict, good = _verdict(study)
    return Report(
        title=study.name,
        kind="sweep",
        description=study.description,
        teaches=study.teaches,
        facts=_facts(study),
        verdict=verdict,
        good=good,
        findings=_findings(study, cut, metrics, grid),
        sections=[s for s in sections if s],
        scenario=study.scenario,
        version=", ".join(study.versions),
    )


def _chosen(study, wanted):
    """The metrics to plot: those asked for, or the first that differ between points."""
    known = {m.name: m for m in study.metrics}
    for name in wanted:
        if name not in known:
            raise ReportError(f"--metric: the sweep has no metric \"{name}\" (it has {', '.join(known) or 'none'})")
    if wanted:
        return [known[name] for name in dict.fromkeys(wanted)]
    if len(study.combinations) == 1:
        return in_order(study.metrics)[:MOST_PLOTTED]
    varying = [m for m in in_order(study.metrics) if len({c.mean(m) for c in study.combinations} - {None}) > 1]
    return varying[:MOST_PLOTTED]


def _verdict(study):
    """(text, whether it is good): points may fail where the sweep expects it."""
    bad = sum(not p.ok for p in study.points)
    unmet = sum(not e.met for e in study.expectations)
    if unmet:
        return f"{unmet} of {len(study.expectations)} expectations not met", False
    if study.expectations and study.planned == len(study.points):
        return "as expected", True
    return ("ok", True) if not bad else (f"{short(bad)} of {short(len(study.points))} not ok", False)


def _facts(study):
    seeds = sorted({p.seed for p in study.points})
    seed = str(seeds[0]) if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]} ({len(seeds)} seeds)"
    out = [("design", study.design)] * bool(study.design) + [("points", short(len(study.points)))]
    out += [("combinations", short(len(study.combinations)))] * study.replicated
    out += [(f"varies {p.label}", _values_text(p)) for p in study.parameters]
    out.append(("seed" if len(seeds) == 1 else "seeds", seed))
    return out + [("scenario hash", study.scenario_hash)] * bool(study.scenario_hash) + [("version", ", ".join(study.versions))]


def _values_text(parameter):
    """The values, or how many and between which; with the unit where the values do not say it."""
    values = parameter.values
    text = (
        ", ".join(v.text for v in values)
        if len(values) <= 6
        else f"{len(values)} values, {values[0].text} to {values[-1].text}"
    )
    return text + (f" {parameter.unit}" if values[-1].text.isdigit() and parameter.unit not in ("", "number") else "")


def _findings(study, cut, metrics, grid):
    out = findings.verdict_findings(study)
    if grid:
        out += findings.failure_findings(study, cut.x, cut.lines)
    out += findings.optimum_findings(study, metrics)
    out += findings.knee_findings(cut, metrics) if grid and cut.x else findings.correlation_findings(study, metrics)
    return out


def _panels(study, cut, metrics, prefix, draw):
    """The plots of `draw` for each metric and each panel; some panels may have nothing to draw."""
    out = []
    for metric in metrics:
        for i, panel in enumerate(cut.panels):
            name = prefix + (f"_{slug(metric.name)}" if metric else "") + (f"_{i}" if len(cut.panels) > 1 else "")
            plot = draw(study, cut, panel, metric, name)
            out += [plot] if plot else []
    return out


def _left_out(cut):
    return f"{cut.left_out} further panels are not drawn; the table has all points." if cut.left_out else ""


def _map(study, cut, grid):
    out = Section("verdicts", "Which points end well", _left_out(cut))
    if grid and cut.second and not all(c.ok for c in study.combinations):
        out.plots = _panels(study, cut, [None], "verdict", heat_map)
    return out


def _along(study, cut, metrics):
    if cut.x is None:
        return Section("lines", "")
    return Section("lines", f"Along {cut.x.label}", _left_out(cut), _panels(study, cut, metrics, "line", line_plot))


def _heat(study, cut, metrics, grid):
    out = Section("maps", "Maps", _left_out(cut))
    if grid and cut.second and min(len(cut.x.values), len(cut.second.values)) >= 3:
        out.plots = _panels(study, cut, metrics, "map", heat_map)
    return out


def _clouds(study, metrics):
    out = Section("clouds", "Metrics by parameter")
    for metric in metrics:
        for parameter in spread(study.axes, MOST_CLOUDS):
            plot = cloud(study, parameter, metric, f"cloud_{slug(metric.name)}_{slug(parameter.name)}")
            out.plots += [plot] if plot else []
    return out


def _label(study, combination):
    return parameter_text({p.name: combination.value(p) for p in study.parameters})


def _messages(study, cut):
    """The messages of single points: how long they took, and in which stages."""
    out = Section("latency", "Latency, and where the time goes")
    workloads = list(dict.fromkeys(d.name for p in study.points for d in p.distributions if p.measured))
    for i, workload in enumerate(workloads):
        found = [(c, _distribution(c, workload)) for c in study.combinations]
        found = [(c, d) for c, d in found if d]
        several = f" of {workload}" if len(workloads) > 1 else ""
        _add_distributions(study, found, i, several, out)
        _add_stages(study, cut, found, i, several, out)
    return out


def _distribution(combination, workload):
    """That of the first point of a combination that came to its end."""
    return next((d for p in combination.points for d in p.distributions if p.measured and d.name == workload), None)


def _note_choice(study, plot, shown, found, how):
    if shown < found:
        plot.notes.append(f"{shown} of {found} points, {how}.")
    if study.replicated:
        plot.notes.append("Of the first point of each combination.")


def _add_distributions(study, found, i, several, out):
    found = [(c, d) for c, d in found if d.cdf]
    chosen = spread(sorted(found, key=lambda f: f[1].median), distributions.MOST_CURVES)
    if len(chosen) == len(found):
        chosen = found  # in the order of the sweep
    plot = distributions.cdf_plot(
        [(_label(study, c), d.cdf) for c, d in chosen], f"latency_cdf_{i}", f"Latency{several}, distribution"
    )
    if plot:
        _note_choice(study, plot, len(chosen), len(found), "from the lowest to the highest median")
        out.plots.append(plot)
        rows = [[Cell(_label(study, c), head=True), number_cell(100 * p), number_cell(t)] for c, d in chosen for p, t in d.cdf]
        columns = [("point", "", False), ("messages", "%", True), ("took at most", "ns", True)]
        out.tables.append(Table(f"cdf-table-{i}", f"The distributions{several} as a table", columns, rows, folded=True))


def _add_stages(study, cut, found, i, several, out):
    found = [(c, d) for c, d in found if d.breakdown]
    chosen = found
    if study.is_grid and cut.x is not None and len(found) > distributions.MOST_BARS:
        # Along the axis of the plots, on the middle line: neighbouring bars then differ in one thing.
        middle = {id(c) for c in cut.lines[len(cut.lines) // 2].cells.values()}
        chosen = sorted((f for f in found if id(f[0]) in middle), key=lambda f: cut.x.place(f[0].value(cut.x))) or found
    chosen = spread(chosen, distributions.MOST_BARS)
    bars = [(_label(study, c), [(stage, mean) for stage, mean, _ in d.breakdown]) for c, d in chosen]
    plot = distributions.stage_plot(bars, f"breakdown_{i}", f"Stages of a message{several}, mean", "latency of a message")
    if plot:
        _note_choice(
            study, plot, len(chosen), len(found), f"along {cut.x.label}" if study.is_grid and cut.x else "evenly spread"
        )
        out.plots.append(plot)
        rows = [
            [Cell(_label(study, c), head=True), Cell(stage), number_cell(mean), number_cell(median)]
            for c, d in chosen
            for stage, mean, median in d.breakdown
            if mean or median
        ]
        columns = [("point", "", False), ("stage", "", False), ("mean", "ns", True), ("median message", "ns", True)]
        out.tables.append(
            Table(f"stage-table-{i}", f"The stages{several} as a table", columns, rows, folded=True, sortable=True)
        )


def _expectations(study):
    rows = [
        [Cell(e.condition, head=True, mark="wide"), Cell("met" if e.met else "not met", mark="good" if e.met else "bad")]
        + [Cell(e.because, mark="wide"), Cell("\n".join(e.failures), mark="wide lines")]
        for e in study.expectations
    ]
    columns = [("condition", "", False), ("is", "", False), ("because", "", False), ("not met by", "", False)]
    tables = [Table("expectation-table", "What the whole sweep has to show", columns, rows)] if rows else []
    return Section("expectations", "Expectations", tables=tables)


def _parameter_cell(value):
    return Cell(value.text, value.number)


def _verdict_cell(verdict):
    return Cell(verdict, mark="good" if verdict == "ok" else "bad")


def _combinations(study):
    """Means and intervals over replications; empty without them."""
    if not study.replicated:
        return Section("combinations", "Combinations")
    metrics = in_order(study.metrics)
    columns = [("combination", "", True)] + _parameter_columns(study) + [("verdict", "", False), ("ok", "points", True)]
    for m in metrics:
        columns += [(m.label, m.unit, True), ("± 95 %", m.unit, True)]
    rows = []
    for s in study.combinations:
        row = [Cell(str(s.points[0].combination), s.points[0].combination, head=True)] + [
            _parameter_cell(s.value(p)) for p in study.parameters
        ]
        row += [_verdict_cell(s.verdict), number_cell(sum(p.ok for p in s.points))]
        for m in metrics:
            row += [number_cell(s.mean(m)), number_cell(s.ci95(m))]
        rows.append(row)
    return Section(
        "combinations",
        "Combinations",
        "Means over the points of a combination that came to their end, with 95 % confidence intervals.",
        tables=[Table("combination-table", "All combinations; a heading sorts", columns, rows, sortable=True)],
    )


def _parameter_columns(study):
    return [(p.label, p.unit, p.numeric) for p in study.parameters]


def _points(study):
    """One row a point, and why points are not ok."""
    metrics = in_order(study.metrics)
    columns = (
        [("point", "", True)] + [("seed", "", True)] * study.replicated + _parameter_columns(study) + [("verdict", "", False)]
    )
    columns += [(m.label, m.unit, True) for m in metrics]
    rows = [
        [Cell(str(p.number), p.number, head=True)]
        + [Cell(str(p.seed), p.seed)] * study.replicated
        + [_parameter_cell(p.value(q)) for q in study.parameters]
        + [_verdict_cell(p.verdict)]
        + [number_cell(p.metrics.get(m.name)) for m in metrics]
        for p in study.points
    ]
    table = Table("point-table", "All points; a heading sorts", columns, rows, folded=study.replicated, sortable=True)
    out = Section("points", "Points", tables=[table])
    failed = [p for p in study.points if p.detail]
    if failed:
        rows = [
            [Cell(str(p.number), p.number, head=True), Cell(str(p.seed), p.seed)]
            + [_parameter_cell(p.value(q)) for q in study.parameters]
            + [_verdict_cell(p.verdict), Cell(p.detail, mark="wide")]
            for p in failed
        ]
        columns = (
            [("point", "", True), ("seed", "", True)] + _parameter_columns(study) + [("verdict", "", False), ("why", "", False)]
        )
        out.tables.append(
            Table("failure-table", f"Why points are not ok ({len(failed)})", columns, rows, folded=len(failed) > 10)
        )
    return out
