// A JSON text as a tree, for formats whose objects cannot be read member by member.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/json_reader.h"

namespace OAR_API oar {

// A value of another kind than the caller asks for is an error that names the kind.
class JsonValue {
 public:
  using List = std::vector<JsonValue>;
  using Object = std::map<std::string, JsonValue, std::less<>>;

  static JsonValue parse(std::string_view text);
  static JsonValue of(Object members);
  static JsonValue of(List elements);

  bool is_none() const { return std::holds_alternative<std::monostate>(content_); }
  bool is_text() const { return std::holds_alternative<std::string>(content_); }
  bool is_list() const { return std::holds_alternative<List>(content_); }
  bool is_object() const { return std::holds_alternative<Object>(content_); }
  bool is_number() const { return std::holds_alternative<JsonReader::Number>(content_); }
  bool has_integer() const { return is_number() && std::get<JsonReader::Number>(content_).integer; }
  bool is_null() const { return std::holds_alternative<std::monostate>(content_); }
  bool is_flag() const { return std::holds_alternative<bool>(content_); }

  const std::string& text() const;
  const List& list() const;
  const Object& object() const;
  double number() const;
  int64_t integer() const;
  bool flag() const;  // 0 and 1 are flags too

  // A member of an object: null, or an error, if it has none of this name.
  const JsonValue* find(std::string_view name) const;
  const JsonValue& at(std::string_view name) const;

 private:
  static JsonValue read(JsonReader& reader);

  std::variant<std::monostate, bool, JsonReader::Number, std::string, List, Object> content_;
};

}  // namespace oar
