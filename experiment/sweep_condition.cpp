// SPDX-License-Identifier: Apache-2.0
// Recursive descent into a tree, which is evaluated per point. Quantities are computed in their base unit.
#include "experiment/sweep_condition.h"

#include <array>
#include <cctype>
#include <cmath>

namespace experiment {

struct Condition::Node {
  enum class Op { value, name, either, both, negation, equal, differs, less, at_most, plus, minus, times, over, floor };
  Op op;
  std::size_t column;
  SweepValue value;
  std::string name;
  std::shared_ptr<const Node> left, right;
};

namespace {

using Node = Condition::Node;
using Op = Node::Op;
using Kind = SweepValue::Kind;
using NodePtr = std::shared_ptr<const Node>;

bool is_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.' || c == '[' || c == ']';
}

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  NodePtr run() {
    NodePtr root = condition();
    skip();
    if (i_ < text_.size()) fail("expected \"and\", \"or\" or the end");
    return root;
  }
  std::vector<Condition::Name> names;

 private:
  [[noreturn]] void fail(const std::string& message) const {
    std::string got = i_ < text_.size() ? "\"" + std::string(text_.substr(i_, 12)) + "\"" : "the end";
    throw ConditionError(i_ + 1, message + ", got " + got);
  }
  void skip() {
    while (i_ < text_.size() && std::isspace(static_cast<unsigned char>(text_[i_])) != 0) ++i_;
  }
  /// Takes `sign` if it comes next.
  bool take(std::string_view sign) {
    skip();
    if (!text_.substr(i_).starts_with(sign)) return false;
    i_ += sign.size();
    return true;
  }
  std::string_view next_word() {
    skip();
    std::size_t end = i_;
    while (end < text_.size() && is_word(text_[end])) ++end;
    return text_.substr(i_, end - i_);
  }
  bool take_word(std::string_view word) {
    if (next_word() != word) return false;
    i_ += word.size();
    return true;
  }
  NodePtr node(Op op, std::size_t at, NodePtr left, NodePtr right = nullptr) {
    return std::make_shared<Node>(Node{op, at + 1, {}, {}, std::move(left), std::move(right)});
  }

  NodePtr condition() {
    if (++depth_ > 100) fail("the condition is nested too deeply");
    NodePtr left = conjunct();
    for (std::size_t at = i_; take_word("or"); at = i_) left = node(Op::either, at, left, conjunct());
    --depth_;
    return left;
  }
  NodePtr conjunct() {
    NodePtr left = negation();
    for (std::size_t at = i_; take_word("and"); at = i_) left = node(Op::both, at, left, negation());
    return left;
  }
  NodePtr negation() {
    skip();
    const std::size_t at = i_;
    return take_word("not") ? node(Op::negation, at, comparison()) : comparison();
  }
  NodePtr comparison() {
    NodePtr left = operand();
    skip();
    const std::size_t at = i_;
    if (take("==")) return node(Op::equal, at, left, operand());
    if (take("!=")) return node(Op::differs, at, left, operand());
    if (take("<=")) return node(Op::at_most, at, left, operand());
    if (take(">=")) return swapped(Op::at_most, at, left);
    if (take("<")) return node(Op::less, at, left, operand());
    if (take(">")) return swapped(Op::less, at, left);
    if (take("=")) i_ = at, fail("equality is written \"==\"");
    return left;
  }
  NodePtr swapped(Op op, std::size_t at, NodePtr left) {
    NodePtr right = operand();
    return node(op, at, std::move(right), std::move(left));
  }
  NodePtr operand() {
    NodePtr left = term();
    for (;;) {
      skip();
      const std::size_t at = i_;
      if (take("+")) left = node(Op::plus, at, left, term());
      else if (take("-")) left = node(Op::minus, at, left, term());
      else return left;
    }
  }
  NodePtr term() {
    NodePtr left = factor();
    for (;;) {
      skip();
      const std::size_t at = i_;
      if (take("*")) left = node(Op::times, at, left, factor());
      else if (take("/")) left = node(Op::over, at, left, factor());
      else return left;
    }
  }
  NodePtr factor() {
    skip();
    const std::size_t at = i_;
    if (i_ >= text_.size()) fail("expected a value or a name");
    const char c = text_[i_];
    if (take("-")) return node(Op::times, at, value(at, value_of(sim::Json(-1))), factor());
    if (take("(")) {
      NodePtr inside = condition();
      if (!take(")")) fail("expected \")\"");
      return inside;
    }
    if (c == '\'' || c == '"') return quoted(c);
    if (std::isdigit(static_cast<unsigned char>(c)) != 0) return number();
    const std::string word(next_word());
    if (word.empty() || word == "and" || word == "or" || word == "not") fail("expected a value or a name");
    i_ += word.size();
    if (word == "true" || word == "false") return value(at, value_of(sim::Json(word == "true")));
    if (word == "floor" && take("(")) {
      NodePtr inside = operand();
      if (!take(")")) fail("expected \")\"");
      return node(Op::floor, at, std::move(inside));
    }
    names.push_back({word, at + 1});
    return std::make_shared<Node>(Node{Op::name, at + 1, {}, word, nullptr, nullptr});
  }
  NodePtr value(std::size_t at, SweepValue v) {
    return std::make_shared<Node>(Node{Op::value, at + 1, std::move(v), {}, nullptr, nullptr});
  }
  NodePtr quoted(char mark) {
    const std::size_t at = i_, end = text_.find(mark, i_ + 1);
    if (end == std::string_view::npos) fail("the text has no closing quote");
    SweepValue v;
    v.kind = Kind::text;
    v.name = text_.substr(at + 1, end - at - 1);
    i_ = end + 1;
    return value(at, std::move(v));
  }
  /// A number and, behind it or one space later, its unit.
  NodePtr number() {
    static constexpr std::array<std::string_view, 16> kUnits{"ps",  "ns", "us", "ms", "s",   "B",    "KiB",  "MiB",
                                                             "GiB", "kB", "MB", "GB", "bps", "kbps", "Mbps", "Gbps"};
    const std::size_t at = i_;
    while (i_ < text_.size() && (std::isdigit(static_cast<unsigned char>(text_[i_])) != 0 || text_[i_] == '.')) ++i_;
    const std::string digits(text_.substr(at, i_ - at));
    const std::size_t behind = i_;
    std::string unit(next_word());
    for (const std::string_view u : kUnits)
      if (u == unit) {
        i_ += unit.size();
        return value(at, checked(at, parse_sweep_value(digits + " " + unit)));
      }
    if (!unit.empty() && i_ == behind) fail("expected a unit (ns, KiB, Gbps, …) or an operator behind the number");
    i_ = behind;
    return value(at, checked(at, parse_sweep_value(digits)));
  }
  SweepValue checked(std::size_t at, SweepValue v) const {
    if (!v.is_number()) throw ConditionError(at + 1, "\"" + v.text() + "\" is not a number");
    return v;
  }

  std::string_view text_;
  std::size_t i_ = 0;
  int depth_ = 0;
};

/// A value under way: a truth, a number of some unit, or a text. Nothing when the point lacks it.
struct Term {
  enum class Form { nothing, truth, number, text } form = Form::nothing;
  double number = 0;          // truth: 0 or 1
  Kind unit = Kind::integer;  // integer stands for "no unit"
  std::string text;
};
using Form = Term::Form;

std::string_view word_for(const Term& t) {
  if (t.form == Form::truth) return "a truth value";
  if (t.form == Form::text) return "a name";
  return t.unit == Kind::time    ? "a time"
         : t.unit == Kind::bytes ? "a size"
         : t.unit == Kind::rate  ? "a rate"
                                 : "a number";
}

Term term_of(const SweepValue& v) {
  switch (v.kind) {
    case Kind::boolean:
      return {Form::truth, static_cast<double>(v.n), Kind::integer, {}};
    case Kind::text:
    case Kind::json:
      return {Form::text, 0, Kind::integer, v.text()};
    case Kind::real:
      return {Form::number, v.d, Kind::integer, {}};
    default:
      return {Form::number, static_cast<double>(v.n), v.kind, {}};
  }
}

class Evaluator {
 public:
  explicit Evaluator(const Condition::Lookup& lookup) : lookup_(lookup) {}

  bool truth(const Node& n) const {
    const Term t = evaluate(n);
    if (t.form == Form::nothing) return false;
    if (t.form != Form::truth) throw ConditionError(n.column, "expected a condition, got " + std::string(word_for(t)));
    return t.number != 0;
  }

 private:
  static Term truth_term(bool b) { return {Form::truth, b ? 1.0 : 0.0, Kind::integer, {}}; }

  Term evaluate(const Node& n) const {
    switch (n.op) {
      case Op::value:
        return term_of(n.value);
      case Op::name: {
        const auto v = lookup_(n.name);
        return v ? term_of(*v) : Term{};
      }
      case Op::either: {
        const bool left = truth(*n.left), right = truth(*n.right);
        return truth_term(left || right);
      }
      case Op::both: {
        const bool left = truth(*n.left), right = truth(*n.right);
        return truth_term(left && right);
      }
      case Op::negation:
        return truth_term(!truth(*n.left));
      case Op::floor: {
        Term t = evaluate(*n.left);
        if (t.form != Form::nothing) require_number(n, t);
        t.number = std::floor(t.number);
        return t;
      }
      case Op::equal:
      case Op::differs:
      case Op::less:
      case Op::at_most:
        return compare(n, evaluate(*n.left), evaluate(*n.right));
      default:
        return compute(n, evaluate(*n.left), evaluate(*n.right));
    }
  }

  static void require_number(const Node& n, const Term& t) {
    if (t.form != Form::number)
      throw ConditionError(n.column, "expected a number or a quantity, got " + std::string(word_for(t)));
  }
  static void require_alike(const Node& n, const Term& a, const Term& b) {
    if (a.form != b.form || a.unit != b.unit)
      throw ConditionError(n.column, std::string(word_for(a)) + " and " + std::string(word_for(b)) + " do not compare");
  }

  static Term compare(const Node& n, const Term& a, const Term& b) {
    if (a.form == Form::nothing || b.form == Form::nothing) return truth_term(false);
    require_alike(n, a, b);
    if (n.op == Op::equal || n.op == Op::differs) {
      const bool same = a.form == Form::text ? a.text == b.text : a.number == b.number;
      return truth_term(same == (n.op == Op::equal));
    }
    require_number(n, a);
    return truth_term(n.op == Op::less ? a.number < b.number : a.number <= b.number);
  }

  static Term compute(const Node& n, const Term& a, const Term& b) {
    if (a.form == Form::nothing || b.form == Form::nothing) return {};
    require_number(n, a);
    require_number(n, b);
    Term out = a;
    if (n.op == Op::plus || n.op == Op::minus) {
      require_alike(n, a, b);
      out.number = n.op == Op::plus ? a.number + b.number : a.number - b.number;
    } else if (n.op == Op::times) {
      if (a.unit != Kind::integer && b.unit != Kind::integer)
        throw ConditionError(n.column, "a product of two quantities");
      out.unit = a.unit != Kind::integer ? a.unit : b.unit;
      out.number = a.number * b.number;
    } else {
      if (b.unit != Kind::integer) {
        require_alike(n, a, b);
        out.unit = Kind::integer;
      }
      if (b.number == 0) return {};
      out.number = a.number / b.number;
    }
    return out;
  }

  const Condition::Lookup& lookup_;
};

}  // namespace

Condition Condition::parse(std::string_view text) {
  Parser parser(text);
  Condition c;
  c.root_ = parser.run();
  c.text_ = text;
  c.names_ = std::move(parser.names);
  return c;
}

bool Condition::holds(const Lookup& lookup) const { return Evaluator(lookup).truth(*root_); }

}  // namespace experiment
