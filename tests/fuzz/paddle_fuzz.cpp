// Any bytes at all as a model of Paddle: either an Error, or a model that runs or refuses its inputs.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "driver.h"
#include "oar/base/error.h"
#include "oar/interop/paddle/import.h"

namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "fuzz: %s\n", what);
  std::abort();
}

// What is more than this takes long, and is no mistake of the reader.
constexpr int64_t kMostElements = 1 << 12;

void run_on_zeros(const oar::paddle::Model& model) {
  std::vector<oar::Tensor> inputs;
  for (const auto& port : model.inputs()) {
    oar::Shape shape;
    for (const int64_t size : port.shape.value()) {
      if (size > kMostElements) return;
      shape.push_back(size < 0 ? oar::Dim(2) : oar::Dim(size));
    }
    const oar::DType dtype = port.dtype.value();
    if (shape.numel().value() > kMostElements || oar::is_packed(dtype)) return;
    oar::Tensor t = oar::Tensor::empty(shape, dtype);
    std::memset(t->data, 0, static_cast<size_t>(t->numel) * oar::size_of(dtype));
    inputs.push_back(std::move(t));
  }
  static_cast<void>(model.program(inputs));  // imports it; loops of a mutated program might not end
}

std::string tensor_record(std::string_view description, size_t bytes) {
  std::string record(16, '\0');
  const auto size = static_cast<int32_t>(description.size());
  record.append(reinterpret_cast<const char*>(&size), 4);
  record.append(description);
  return record.append(bytes, '\x3f');
}

// A message of Protocol Buffers: (field, content).
std::string field(int number, std::string_view content) {
  std::string made(1, static_cast<char>(number << 3 | 2));
  for (size_t n = content.size();; n >>= 7) {
    made += static_cast<char>((n & 0x7f) | (n > 0x7f ? 0x80 : 0));
    if (n <= 0x7f) break;
  }
  return made + std::string(content);
}
std::string number_field(int number, int value) {
  return {static_cast<char>(number << 3), static_cast<char>(value)};
}

std::string legacy_op(std::string_view type, std::string_view in, std::string_view from,
                      std::string_view out, std::string_view to) {
  return field(4, field(1, field(1, in) + field(2, from)) + field(2, field(1, out) + field(2, to)) +
                      field(3, type) +
                      field(4, field(1, "col") + number_field(2, 0) + number_field(3, 0)));
}

std::string legacy_variable(std::string_view name, bool persistable) {
  const std::string tensor = number_field(1, 5) + number_field(2, 2);
  return field(3, field(1, name) + field(2, number_field(1, 7) + field(3, field(1, tensor))) +
                      number_field(3, persistable ? 1 : 0));
}

}  // namespace

// The last 32 bytes are the parameters: one record of two numbers.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::vector<char> exact(data, data + size);
  const size_t weights = std::min<size_t>(size, 32);
  const std::string_view program(exact.data(), size - weights),
      parameters(exact.data() + program.size(), weights);
  try {
    run_on_zeros(oar::paddle::Model(program, parameters));
  } catch (const oar::Error& error) {
    if (error.kind() == oar::ErrorKind::Internal) broken(error.what());
  } catch (const std::exception& error) {
    broken(error.what());
  }
  return 0;
}

std::vector<std::string> seeds() {
  const std::string record = tensor_record(number_field(1, 5) + number_field(2, 2), 8);
  const std::string block =
      number_field(1, 0) + std::string("\x10\xff\xff\xff\xff\x0f", 6) +
      legacy_variable("x", false) + legacy_variable("w", true) +
      legacy_op("feed", "X", "feed", "Out", "x") + legacy_op("tanh", "X", "x", "Out", "y") +
      legacy_op("relu", "X", "w", "Out", "z") + legacy_op("fetch", "X", "z", "Out", "fetch");
  const std::string type = R"({"#":"0.t_dtensor","D":[{"#":"0.t_f32"},[2],"NCHW",[],0]})";
  const std::string head =
      R"({"base_code":{"magic":"pir","trainable":true,"version":1},)"
      R"("program":{"regions":[{"#":"region_0","blocks":[{"#":"block_0","args":[],"ops":[)"
      R"({"#":"p","A":[0,1,1,"w"],"DA":[],"O":{"%":1,"TT":)" +
      type +
      R"(},"OA":[1,0,1],"QA":[]},)"
      R"({"#":"1.data","A":[{"AT":{"#":"0.a_str","D":"x"},"N":"name"}],"I":[],"O":[{"%":2,"TT":)" +
      type + R"(}]},)";
  const std::string tail =
      R"({"#":"1.fetch","A":[],"I":[{"%":3}],"O":[{"%":9,"TT":)" + type + "}]}]}]}]}}";
  const std::string result = R"("O":[{"%":3,"TT":)" + type + "}]";
  return {
      field(1, block) + record,
      head + R"({"#":"1.add","A":[],"I":[{"%":1},{"%":2}],)" + result + "}," + tail + record,
      head +
          R"({"#":"1.full_int_array","A":[{"AT":{"#":"0.a_array","D":[{"#":"0.a_i64","D":-1}]},"N":"value"}],)"
          R"("I":[],"O":[{"%":4,"TT":)" +
          type + R"(}]},{"#":"1.reshape","A":[],"I":[{"%":2},{"%":4}],)" + result + "}," + tail +
          record,
      head + R"({"#":"1.any","A":[],"I":[{"%":2}],"O":[{"%":5,"TT":)" + type +
          R"(}]},{"#":"1.if","A":[],"I":[{"%":5}],)" + result +
          R"(,"regions":[{"#":"r","blocks":[{"args":[],"ops":[{"#":"2.yield","A":[],"I":[{"%":1}],"O":[]}]}]},)"
          R"({"#":"r","blocks":[{"args":[],"ops":[{"#":"2.yield","A":[],"I":[{"%":2}],"O":[]}]}]}]},)" +
          tail + record,
      head + R"({"#":"1.any","A":[],"I":[{"%":2}],"O":[{"%":5,"TT":)" + type +
          R"(}]},{"#":"1.while","A":[],"I":[{"%":5},{"%":1}],)" + result +
          R"(,"regions":[{"#":"r","blocks":[{"args":[{"#":-1,"TT":1}],"ops":[{"#":"2.yield","A":[],"I":[{"%":5},{"%":-1}],"O":[]}]}]}]},)" +
          tail + record,
  };
}

std::vector<std::string> dictionary() {
  return {"\"#\"",      "\"%\"",
          "\"D\"",      "\"VD\"",
          "\"NaN\"",    "0.combine",
          "0.split",    "1.full",
          "1.concat",   "1.slice",
          "1.conv2d",   "1.matmul",
          "1.rnn",      "1.pool2d",
          "1.scale",    "1.expand",
          "1.stack",    "1.shape64",
          "1.pad3d",    "1.while",
          "1.if",       "0.a_array",
          "0.a_f64",    "\"N\"",
          "0.t_vec",    "9223372036854775807",
          "-1",         "sum",
          "reshape2",   "transpose2",
          "while",      "matmul_v2",
          "squeeze2",   "concat",
          R"({"%":1})", R"({"%":2})",
          R"({"%":0})"};
}
