// Writes small HDF5 files, as h5py does: groups of the old kind, attributes, arrays in one piece and in packed chunks.
#pragma once

#include <bit>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

class Hdf5Seed {
 public:
  Hdf5Seed() : file_(96, '\0') {}

  uint64_t floats(const std::vector<uint64_t>& sizes, const std::vector<float>& values,
                  bool packed = false) {
    std::string content;
    for (const float value : values) content += number(std::bit_cast<uint32_t>(value), 4);
    std::string layout, filters;
    if (packed) {
      // Shuffled by bytes, then deflated: a stored block between the two bytes of zlib and its checksum.
      std::string shuffled;
      for (size_t byte = 0; byte < 4; ++byte)
        for (size_t i = 0; i < values.size(); ++i) shuffled += content[4 * i + byte];
      const uint64_t size = shuffled.size();
      const uint64_t chunk =
          put("\x78\x9c\x01" + number(size, 2) + number(~size, 2) + shuffled + number(0, 4));
      std::string tree = "TREE" + number(1, 1) + number(0, 1) + number(1, 2) + none() + none();
      tree += number(size + 11, 4) + number(0, 4) +
              number(0, 8 * static_cast<int>(sizes.size() + 1)) + number(chunk, 8);
      layout = number(3, 1) + number(2, 1) + number(sizes.size() + 1, 1) + number(put(tree), 8);
      for (const uint64_t s : sizes) layout += number(s, 4);
      layout += number(4, 4);
      filters = number(1, 1) + number(2, 1) + number(0, 6) + number(2, 2) + number(0, 2) +
                number(1, 2) + number(1, 2) + number(4, 4) + number(0, 4) + number(1, 2) +
                number(0, 2) + number(1, 2) + number(1, 2) + number(4, 4) + number(0, 4);
    } else {
      layout = number(3, 1) + number(1, 1) + number(put(content), 8) + number(content.size(), 8);
    }
    const std::string real = number(0x11, 1) + number(0x1f2020, 3) + number(4, 4) +
                             number(0x20000000, 4) + number(0x7f00170817, 8);
    std::string messages = message(1, space(sizes)) + message(3, real) + message(8, layout);
    int count = 3;
    if (!filters.empty()) {
      messages += message(11, filters);
      ++count;
    }
    return header(messages, count);
  }

  // Attributes of texts: of any length where there is one, else of one length.
  uint64_t group(const std::map<std::string, uint64_t>& members,
                 const std::map<std::string, std::vector<std::string>>& attributes) {
    std::string names(8, '\0'),
        symbols = "SNOD" + number(1, 1) + number(0, 1) + number(members.size(), 2);
    for (const auto& [name, place] : members) {
      symbols += number(names.size(), 8) + number(place, 8) + number(0, 24);
      names += padded(name + '\0');
    }
    const uint64_t node = put(symbols), heap_data = put(names);
    const uint64_t heap =
        put("HEAP" + number(0, 4) + number(names.size(), 8) + none() + number(heap_data, 8));
    const uint64_t tree =
        put("TREE" + number(0, 1) + number(0, 1) + number(1, 2) + none() + none() + number(0, 8) +
            number(node, 8) + number(names.size() - 8, 8));
    std::string messages = message(17, number(tree, 8) + number(heap, 8));
    for (const auto& [name, texts] : attributes) messages += message(12, attribute(name, texts));
    return header(messages, static_cast<int>(1 + attributes.size()));
  }

  std::string file(uint64_t root) {
    std::string start = "\x89HDF\r\n\x1a\n" + number(0, 5) + number(8, 1) + number(8, 1) +
                        number(0, 1) + number(4, 2) + number(16, 2) + number(0, 4);
    start += number(0, 8) + none() + number(file_.size(), 8) + none() + number(0, 8) +
             number(root, 8) + number(0, 24);
    file_.replace(0, start.size(), start);
    return file_;
  }

 private:
  static std::string number(uint64_t value, int bytes) {
    std::string made;
    for (int i = 0; i < bytes; ++i) made += static_cast<char>(i < 8 ? value >> (8 * i) : 0);
    return made;
  }
  static std::string none() { return std::string(8, '\xff'); }
  static std::string padded(std::string text) {
    text.resize((text.size() + 7) / 8 * 8);
    return text;
  }
  static std::string space(const std::vector<uint64_t>& sizes) {
    std::string made = number(1, 1) + number(sizes.size(), 1) + number(0, 6);
    for (const uint64_t size : sizes) made += number(size, 8);
    return made;
  }
  static std::string message(int type, const std::string& content) {
    const std::string whole = padded(content);
    return number(static_cast<uint64_t>(type), 2) + number(whole.size(), 2) + number(0, 4) + whole;
  }
  uint64_t put(const std::string& bytes) {
    const uint64_t place = file_.size();
    file_ += padded(bytes);
    return place;
  }
  uint64_t header(const std::string& messages, int count) {
    return put(number(1, 1) + number(0, 1) + number(static_cast<uint64_t>(count), 2) +
               number(1, 4) + number(messages.size(), 4) + number(0, 4) + messages);
  }
  std::string attribute(const std::string& name, const std::vector<std::string>& texts) {
    std::string type, content;
    if (texts.size() == 1) {
      const uint64_t heap =
          put("GCOL" + number(1, 4) + number(16 + 16 + padded(texts[0]).size(), 8) + number(1, 2) +
              number(0, 6) + number(texts[0].size(), 8) + texts[0]);
      type = number(0x19, 1) + number(1, 3) + number(16, 4) + number(0x10, 1) + number(0, 3) +
             number(1, 4) + number(0x800, 4);
      content = number(texts[0].size(), 4) + number(heap, 8) + number(1, 4);
    } else {
      size_t most = 1;
      for (const std::string& text : texts) most = std::max(most, text.size());
      type = number(0x13, 1) + number(0, 3) + number(most, 4);
      for (std::string text : texts) {
        text.resize(most);
        content += text;
      }
    }
    const std::string sizes =
        space(texts.size() == 1 ? std::vector<uint64_t>{} : std::vector<uint64_t>{texts.size()});
    return number(1, 2) + number(name.size() + 1, 2) + number(type.size(), 2) +
           number(sizes.size(), 2) + padded(name + '\0') + padded(type) + padded(sizes) + content;
  }

  std::string file_;
};
