// The text form of Protocol Buffers, as in Caffe's .prototxt files: fields by name, values as words.
//
//   const TextMessage net = parse_text_message("layer { name: 'conv1' }");
//   net.all("layer")[0]->text("name", "");
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace oar::caffe {

class TextMessage {
 public:
  struct Field;

  bool has(std::string_view name) const;
  // Errors name the field.
  std::string text(std::string_view name, std::string_view otherwise) const;
  int64_t integer(std::string_view name, int64_t otherwise) const;
  double number(std::string_view name, double otherwise) const;
  bool flag(std::string_view name, bool otherwise) const;
  std::vector<std::string> texts(std::string_view name) const;
  std::vector<int64_t> integers(std::string_view name) const;
  std::vector<double> numbers(std::string_view name) const;
  // Messages of this name.
  std::vector<const TextMessage*> all(std::string_view name) const;
  // The first one, or an empty message.
  const TextMessage& message(std::string_view name) const;

  std::vector<Field> fields;
};

struct TextMessage::Field {
  std::string name;
  std::string value;  // of a number, a word or a string
  bool is_message = false;
  TextMessage message;
};

TextMessage parse_text_message(std::string_view text);

}  // namespace oar::caffe
