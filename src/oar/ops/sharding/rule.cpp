#include "oar/ops/sharding/rule.h"

#include <algorithm>
#include <cctype>

#include "oar/base/error.h"
#include "oar/base/string_util.h"

namespace oar {
namespace {

ShardTerm parse_term(std::string_view text, std::string_view rule) {
  ShardTerm term;
  std::string s(trim(text));
  if (s.substr(0, 3) == "...") {
    term.leading = true;
    s.erase(0, 3);
  }
  if (s.size() >= 3 && s.substr(s.size() - 3) == "...") {
    term.trailing = true;
    s.erase(s.size() - 3);
  }
  for (char c : s) {
    user_check(std::isalpha(static_cast<unsigned char>(c)) != 0, ErrorKind::InvalidArgument,
               "the sharding rule '{}' has '{}' where a factor's letter belongs.", rule, c);
    term.factors += c;
  }
  return term;
}

std::vector<ShardTerm> parse_terms(std::string_view text, std::string_view rule) {
  std::vector<ShardTerm> terms;
  for (std::string_view term : split(text, ',')) terms.push_back(parse_term(term, rule));
  return terms;
}

// "a@axis whole", "v masked sum by x", "... whole".
ShardFactor parse_clause(std::string_view clause, std::string_view rule, const Schema& schema) {
  user_check(!clause.empty(), ErrorKind::InvalidArgument, "the sharding rule '{}' ends in nothing.",
             rule);
  ShardFactor factor{clause[0], {}, {}, {}};
  const size_t space = clause.find(' ');
  if (clause.size() > 1 && clause[1] == '@')
    factor.attribute = clause.substr(2, space == std::string_view::npos ? space : space - 2);
  if (space != std::string_view::npos) factor.combine = trim(clause.substr(space));
  if (const size_t by = factor.combine.find(" by "); by != std::string::npos) {
    factor.positions = factor.combine.substr(by + 4);
    factor.combine.erase(by);
  }
  for (const std::string& name : {factor.attribute, factor.positions})
    user_check(name.empty() || schema.index_of(name) >= 0, ErrorKind::InvalidArgument,
               "the sharding rule '{}' names '{}', which {} lacks.", rule, name, schema.name);
  static constexpr std::string_view kWords[] = {"",     "whole", "sum",  "max",       "min",
                                                "mean", "again", "same", "masked sum"};
  for (std::string_view word : split(factor.combine, '/'))
    user_check(
        std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords),
        ErrorKind::InvalidArgument,
        "the sharding rule '{}' of {} says '{}'; a factor is whole, or joins by sum, max, min, "
        "mean, again, same or masked sum.",
        rule, schema.name, word);
  return factor;
}

constexpr std::string_view kWhole = "whole:";

}  // namespace

ShardRule ShardRule::parse(std::string_view text, const Schema& schema) {
  ShardRule rule;
  if (text.starts_with(kWhole)) {
    rule.whole = trim(text.substr(kWhole.size()));
    user_check(!rule.whole.empty(), ErrorKind::InvalidArgument,
               "the sharding rule of {} lets nothing be cut and does not say why.", schema.name);
    return rule;
  }
  if (const size_t hash = text.find('#'); hash != std::string_view::npos) {
    rule.why = trim(text.substr(hash + 1));
    text = text.substr(0, hash);
  }
  const size_t semicolon = text.find(';');
  const std::string_view equation = text.substr(0, semicolon);
  const size_t arrow = equation.find("->");
  user_check(arrow != std::string_view::npos, ErrorKind::InvalidArgument,
             "the sharding rule '{}' of {} has no '->'.", text, schema.name);
  if (!trim(equation.substr(0, arrow)).empty())
    rule.operands = parse_terms(equation.substr(0, arrow), text);
  rule.results = parse_terms(equation.substr(arrow + 2), text);
  const auto tensors = std::count_if(schema.parameters.begin(), schema.parameters.end(),
                                     [](const Parameter& p) { return p.is_tensor(); });
  user_check(static_cast<ptrdiff_t>(rule.operands.size()) == tensors, ErrorKind::InvalidArgument,
             "the sharding rule '{}' of {} has {} operands; the schema has {} tensor parameters.",
             text, schema.name, rule.operands.size(), tensors);
  user_check(rule.results.size() == schema.results.size(), ErrorKind::InvalidArgument,
             "the sharding rule '{}' of {} has {} results; the schema has {}.", text, schema.name,
             rule.results.size(), schema.results.size());
  if (semicolon == std::string_view::npos) return rule;
  std::string clauses(text.substr(semicolon + 1));
  std::replace(clauses.begin(), clauses.end(), ';', ',');
  for (std::string_view clause : split(clauses, ','))
    rule.factors.push_back(parse_clause(trim(clause), text, schema));
  return rule;
}

bool ShardRule::batches() const {
  const auto leads = [](const ShardTerm& t) { return t.leading; };
  return whole.empty() && std::all_of(operands.begin(), operands.end(), leads) &&
         std::all_of(results.begin(), results.end(), leads);
}

const ShardFactor* ShardRule::factor(char letter) const {
  for (const ShardFactor& f : factors)
    if (f.letter == letter) return &f;
  return nullptr;
}

}  // namespace oar
