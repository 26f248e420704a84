// The file of parameters: tensors back to back, in the order of their names, which it does not have.
#include <algorithm>
#include <cstring>

#include "oar/base/error.h"
#include "oar/base/string_util.h"
#include "oar/interop/paddle/model.h"
#include "oar/interop/proto_writer.h"
#include "oar/interop/protobuf.h"
#include "oar/ops/gen/copy.h"
#include "oar/tensor/byte_count.h"

namespace oar::paddle {
namespace {

struct Number {
  int64_t number;
  DType dtype;
};
constexpr Number kDTypes[] = {
    {0, DType::Bool},          {1, DType::Int16},       {2, DType::Int32},
    {3, DType::Int64},         {4, DType::Float16},     {5, DType::Float32},
    {6, DType::Float64},       {20, DType::UInt8},      {21, DType::Int8},
    {22, DType::BFloat16},     {23, DType::Complex64},  {24, DType::Complex128},
    {32, DType::Float8E4M3FN}, {33, DType::Float8E5M2}, {37, DType::UInt32},
    {38, DType::UInt64},
};

[[noreturn]] void damaged(const Parameter& p, std::string_view what) {
  fail(
      ErrorKind::InvalidArgument,
      "the file of parameters does not fit the program: at '{}' {}.\nhint: Both files must be of one model; "
      "copy or download them again.",
      p.name, what);
}

class Records {
 public:
  explicit Records(std::string_view file) : rest_(file) {}

  Tensor next(const Parameter& p) {
    if (word<uint32_t>(p) != 0) damaged(p, "a record has an unknown version");
    const auto levels = word<uint64_t>(p);
    for (uint64_t i = 0; i < levels; ++i) take(word<uint64_t>(p), p);
    if (word<uint32_t>(p) != 0) damaged(p, "a tensor has an unknown version");
    const auto described = word<int32_t>(p);
    if (described < 0) damaged(p, "a description has a negative length");
    const auto [dtype, shape] = describe(take(static_cast<uint64_t>(described), p));
    check_type(p, dtype, shape);
    const std::vector<Dim> dims(shape.begin(), shape.end());
    const std::string_view content = take(size_of_content(dtype, shape, p), p);
    Tensor made = Tensor::empty(Dims(dims), dtype);
    if (!content.empty()) std::memcpy(made.data<void>(), content.data(), content.size());
    return made;
  }
  size_t left() const { return rest_.size(); }

 private:
  template <class T>
  T word(const Parameter& p) {
    const std::string_view bytes = take(sizeof(T), p);
    T value;
    std::memcpy(&value, bytes.data(), bytes.size());
    return value;
  }

  std::string_view take(uint64_t size, const Parameter& p) {
    if (size > rest_.size()) damaged(p, "it ends too early");
    const std::string_view taken = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return taken;
  }

  static std::pair<DType, std::vector<int64_t>> describe(std::string_view message) {
    std::pair<DType, std::vector<int64_t>> found{DType::Float32, {}};
    for (ProtoReader r(message); r.next();) {
      if (r.field() == 1) found.first = dtype_of(r.integer());
      if (r.field() == 2) r.append(found.second);
    }
    return found;
  }

  static void check_type(const Parameter& p, DType dtype, const std::vector<int64_t>& shape) {
    if (dtype != p.dtype)
      damaged(p, format("it has {}, the program wants {}", name_of(dtype), name_of(p.dtype)));
    const bool fits =
        shape.size() == p.shape.size() &&
        std::equal(shape.begin(), shape.end(), p.shape.begin(), [](int64_t has, int64_t wants) {
          return has >= 0 && (wants < 0 || has == wants);
        });
    if (!fits)
      damaged(p, format("it has the shape [{}], the program wants [{}]", join(shape, ", "),
                        join(p.shape, ", ")));
  }

  static uint64_t size_of_content(DType dtype, const std::vector<int64_t>& shape,
                                  const Parameter& p) {
    int64_t bytes = static_cast<int64_t>(size_of(dtype));
    for (const int64_t size : shape)
      if (__builtin_mul_overflow(bytes, size, &bytes))
        damaged(p, "a tensor is larger than any memory");
    return static_cast<uint64_t>(bytes);
  }

  std::string_view rest_;
};

}  // namespace

DType dtype_of(int64_t number) {
  for (const Number& n : kDTypes)
    if (n.number == number) return n.dtype;
  fail(ErrorKind::Unsupported,
       "the model has tensors of Paddle's dtype {}, which Oar does not have.", number);
}

int64_t number_of(DType dtype) {
  for (const Number& n : kDTypes)
    if (n.dtype == dtype) return n.number;
  fail(ErrorKind::Unsupported, "Paddle's files have no tensors of {}.", name_of(dtype));
}

void append_record(std::string& file, const Tensor& tensor) {
  const Tensor plain = assign(tensor);  // without gaps
  ProtoWriter described;
  described.integer(1, number_of(plain.dtype()));
  for (const Dim d : plain.dims()) described.integer(2, d.value());
  file.append(16, '\0');  // versions, and no levels of sequences
  const auto length = static_cast<int32_t>(described.bytes().size());
  file.append(reinterpret_cast<const char*>(&length), sizeof length);
  file += described.bytes();
  file.append(plain.data<const char>(),
              static_cast<size_t>(bytes_of(plain.shape(), plain.dtype()).value()));
}

void bind_parameters(ModelFile& model, std::string_view file) {
  std::vector<const Parameter*> sorted;
  for (const Parameter& p : model.parameters) sorted.push_back(&p);
  std::sort(sorted.begin(), sorted.end(),
            [](const Parameter* a, const Parameter* b) { return a->name < b->name; });
  Records records(file);
  for (const Parameter* p : sorted) {
    Tensor read = records.next(*p);
    user_check(model.weights.emplace(p->value, std::move(read)).second, ErrorKind::InvalidArgument,
               "the program declares the parameter '{}' twice.", p->name);
  }
  user_check(
      records.left() == 0, ErrorKind::InvalidArgument,
      "the file of parameters has {} bytes more than the program's parameters.\nhint: Both files must be "
      "of one model.",
      records.left());
}

}  // namespace oar::paddle
