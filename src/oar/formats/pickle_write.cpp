#include <bit>
#include <cstring>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/device/device.h"
#include "oar/formats/numpy_types.h"
#include "oar/formats/pickle.h"
#include "oar/ops/families/transfer.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/byte_count.h"

namespace oar {
namespace {

// Protocol 4, without memo: values are written where they stand.
class PickleWriter {
 public:
  std::string whole(const StateTree& value) {
    out_ = "\x80\x04";
    write(value);
    out_ += '.';
    return std::move(out_);
  }

 private:
  void write(const StateTree& value) {
    std::visit([&](const auto& own) { put(own); }, value.content());
  }

  void put(std::monostate) { out_ += 'N'; }
  void put(bool value) { out_ += value ? '\x88' : '\x89'; }
  void put(int64_t value) {
    if (value == static_cast<int32_t>(value)) {
      out_ += 'J';
      raw(static_cast<int32_t>(value));
    } else {
      out_ += "\x8a\x08";
      raw(value);
    }
  }
  void put(uint64_t value) {  // above the largest int64_t: with a byte for the sign
    out_ += "\x8a\x09";
    raw(value);
    out_ += '\0';
  }
  void put(double value) {
    out_ += 'G';
    raw(__builtin_bswap64(std::bit_cast<uint64_t>(value)));
  }
  void put(const std::string& value) {
    out_ += 'X';
    raw(static_cast<uint32_t>(value.size()));
    out_ += value;
  }
  void put(const StateTree::List& list) {
    out_ += "](";
    for (const StateTree& item : list) write(item);
    out_ += 'e';
  }
  void put(const StateTree::Dict& dict) {
    out_ += "}(";
    for (const auto& [key, value] : dict) {
      put(key);
      write(value);
    }
    out_ += 'u';
  }
  void put(const Tensor& given) {
    const Tensor t = as_written(given);
    const char* type = numpy_type_of(t.dtype());
    user_check(type != nullptr, ErrorKind::Unsupported,
               "{} cannot be written to one of Paddle's files.\nhint: Save it as safetensors.",
               t.describe());
    // numpy.core.multiarray._reconstruct(numpy.ndarray, (0,), b"b"), then its state.
    out_ += "cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK";
    out_ += std::string_view(
        "\0\x85"
        "C\x01"
        "b\x87R(K\x01(",
        11);
    for (const Dim size : t.dims()) put(size.value());
    out_ += 't';
    put_dtype(type);
    out_ += '\x89';
    const auto bytes = static_cast<uint64_t>(byte_count(t.numel().value(), t.dtype()));
    out_ += '\x8e';
    raw(bytes);
    out_.append(t.data<char>(), bytes);
    out_ += "tb";
  }
  void put_dtype(const char* type) {
    out_ += "cnumpy\ndtype\n";
    put(std::string(type));
    out_ += "\x89\x88\x87R(K\x03";
    put(std::string(type[1] == '1' ? "|" : "<"));
    out_ += "NNN";
    put(int64_t{-1});
    put(int64_t{-1});
    out_ += std::string_view("K\0tb", 4);
  }

  template <class T>
  void raw(T value) {
    out_.append(reinterpret_cast<const char*>(&value), sizeof(value));
  }

  std::string out_;
};

}  // namespace

Tensor as_written(const Tensor& tensor) {
  const Tensor there = to_device(tensor, Device{});
  return there.is_contiguous() ? there : assign(there);
}

std::string to_pickle(const StateTree& value) { return PickleWriter().whole(value); }

void save_pickle(const std::string& path, const StateTree& value) {
  write_file_atomic(path, to_pickle(value));
}

}  // namespace oar
