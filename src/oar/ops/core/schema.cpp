#include "oar/ops/core/schema.h"

#include <algorithm>
#include <stdexcept>

#include "oar/base/error.h"
#include "oar/ops/core/program_args.h"

namespace oar {
namespace {

SchemaLine parsed(std::string_view text) {
  try {
    return SchemaLine::parse(text);
  } catch (const SchemaMistake& mistake) {
    fail(ErrorKind::InvalidArgument, "{}", mistake.what());
  }
}

Value default_value(const Parameter& p, std::vector<int64_t>& ints, std::vector<double>& doubles) {
  const std::string& text = p.default_text;
  const auto bad = [&]() {
    fail(ErrorKind::InvalidArgument, "the default '{}' of {} is not a {}.", text, p.name,
         p.type_text());
  };
  if (!p.has_default || text == "None") return {};
  if (text == "True" || text == "False") return text == "True";
  if (text.front() == '\'' || text.front() == '"')
    return std::string_view(text).substr(1, text.size() - 2);
  if (p.type == ArgType::DType) {
    const auto dtype = dtype_from_name(text);
    if (!dtype) bad();
    return *dtype;
  }
  std::vector<std::string> items;
  std::string item;
  for (char c : text) {
    if (c == ',') {
      items.push_back(item);
      item.clear();
    } else if (c != '[' && c != ']' && c != ' ')
      item += c;
  }
  if (!item.empty()) items.push_back(item);
  const bool list = p.list || p.type == ArgType::Shape;
  const bool real = p.type == ArgType::Float || text.find_first_of(".e") != std::string::npos;
  try {
    size_t used = 0;
    const auto number = [&](const std::string& word) {
      const Value value =
          real ? Value(std::stod(word, &used)) : Value(int64_t{std::stoll(word, &used)});
      if (used != word.size() || p.type == ArgType::Bool || p.type == ArgType::String) bad();
      return value;
    };
    if (!list) return number(text);
    for (const std::string& i : items) {
      if (real)
        doubles.push_back(number(i).as_double());
      else
        ints.push_back(number(i).as_int());
    }
  } catch (const std::logic_error&) {  // what stod and stoll throw
    bad();
  }
  return real ? Value(std::span<const double>(doubles)) : Value(Ints(ints));
}

}  // namespace

Schema::Schema(SchemaLine line)
    : SchemaLine(std::move(line)), defaults_(std::make_shared<Frame>()) {
  for (const Parameter& p : parameters) {
    std::vector<int64_t> ints;
    std::vector<double> doubles;
    defaults_->push(default_value(p, ints, doubles));
  }
}

Schema Schema::parse(std::string_view text) { return Schema(parsed(text)); }

bool takes_programs(const Schema& schema) {
  return std::any_of(schema.parameters.begin(), schema.parameters.end(),
                     [](const Parameter& p) { return p.type == ArgType::Program; });
}

bool takes_branches(const Schema& schema) {
  return std::any_of(schema.parameters.begin(), schema.parameters.end(),
                     [](const Parameter& p) { return p.type == ArgType::Program && p.list; });
}

}  // namespace oar
