// Parses the schema lines on standard input and prints one JSON object per line. `schema_lines.py` compiles and runs
// it, so that the library's own parser is the only one.
#include <cstdio>
#include <iostream>
#include <string>

#include "oar/ops/core/schema_line.h"

namespace {

std::string quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x20) {
      char code[8];
      std::snprintf(code, sizeof code, "\\u%04x", static_cast<unsigned>(c));
      out += code;
    } else {
      if (c == '"' || c == '\\') out += '\\';
      out += c;
    }
  }
  return out + '"';
}

std::string member(const char* name, const std::string& value) {
  return quoted(name) + ": " + value;
}
std::string member(const char* name, bool value) {
  return member(name, std::string(value ? "true" : "false"));
}

std::string json(const oar::Parameter& p) {
  const std::string alias = p.alias ? std::string(1, p.alias) : "";
  return "{" + member("name", quoted(p.name)) + ", " + member("type", quoted(p.type_name())) +
         ", " + member("list", p.list) + ", " + member("optional", p.optional) + ", " +
         member("optional_elements", p.optional_elements) + ", " + member("written", p.written) +
         ", " + member("alias", quoted(alias)) + ", " +
         member("default", p.has_default ? quoted(p.default_text) : std::string("null")) + "}";
}

std::string json(const oar::Result& r) {
  return "{" + member("name", quoted(r.name)) + ", " + member("list", r.list) + ", " +
         member("written", r.written) + "}";
}

template <class T>
std::string json(const std::vector<T>& items) {
  std::string out = "[";
  for (const T& item : items) out += (out.size() > 1 ? ", " : "") + json(item);
  return out + "]";
}

std::string json(const oar::SchemaLine& line) {
  return "{" + member("name", quoted(line.name)) + ", " +
         member("version", std::to_string(line.version)) + ", " +
         member("parameters", json(line.parameters)) + ", " +
         member("results", json(line.results)) + "}";
}

}  // namespace

int main() {
  for (std::string text; std::getline(std::cin, text);) {
    try {
      std::cout << json(oar::SchemaLine::parse(text)) << '\n';
    } catch (const oar::SchemaMistake& mistake) {
      std::cout << "{" << member("mistake", quoted(mistake.what())) << "}\n";
    }
  }
}
