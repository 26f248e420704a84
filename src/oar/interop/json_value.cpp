#include "oar/interop/json_value.h"

#include "oar/base/error.h"

namespace oar {
namespace {

[[noreturn]] void wrong(const char* wanted) {
  fail(ErrorKind::InvalidArgument, "the file is damaged: {} is expected, but it has another value.",
       wanted);
}

template <class T, class V>
const T& get(const V& content, const char* wanted) {
  const T* found = std::get_if<T>(&content);
  if (!found) wrong(wanted);
  return *found;
}

}  // namespace

JsonValue JsonValue::of(Object members) {
  JsonValue value;
  value.content_ = std::move(members);
  return value;
}

JsonValue JsonValue::of(List elements) {
  JsonValue value;
  value.content_ = std::move(elements);
  return value;
}

JsonValue JsonValue::read(JsonReader& reader) {
  JsonValue value;
  switch (reader.next()) {
    case '{': {
      Object members;
      reader.object([&](const std::string& key) { members.emplace(key, read(reader)); });
      value.content_ = std::move(members);
      break;
    }
    case '[': {
      List elements;
      reader.array([&] { elements.push_back(read(reader)); });
      value.content_ = std::move(elements);
      break;
    }
    case '"':
      value.content_ = reader.string();
      break;
    case 't':
    case 'f':
      value.content_ = reader.boolean();
      break;
    case 'n':
      reader.skip();
      break;
    default:
      value.content_ = reader.number();
  }
  return value;
}

JsonValue JsonValue::parse(std::string_view text) {
  JsonReader reader(text);
  JsonValue value = read(reader);
  reader.end();
  return value;
}

const std::string& JsonValue::text() const { return get<std::string>(content_, "a text"); }
const JsonValue::List& JsonValue::list() const { return get<List>(content_, "a list"); }
const JsonValue::Object& JsonValue::object() const { return get<Object>(content_, "an object"); }

double JsonValue::number() const { return get<JsonReader::Number>(content_, "a number").value; }

int64_t JsonValue::integer() const {
  const auto& found = get<JsonReader::Number>(content_, "an integer");
  if (!found.integer) wrong("an integer");
  return *found.integer;
}

bool JsonValue::flag() const { return is_flag() ? std::get<bool>(content_) : integer() != 0; }

const JsonValue* JsonValue::find(std::string_view name) const {
  const Object& members = object();
  const auto found = members.find(name);
  return found == members.end() ? nullptr : &found->second;
}

const JsonValue& JsonValue::at(std::string_view name) const {
  const JsonValue* found = find(name);
  user_check(found, ErrorKind::InvalidArgument,
             "the file is damaged: an object has no member '{}'.", name);
  return *found;
}

}  // namespace oar
