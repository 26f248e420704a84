#include "oar/cli/model_inputs.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <map>
#include <random>
#include <span>

#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/cli/image_input.h"
#include "oar/formats/npy.h"
#include "oar/formats/npz.h"
#include "oar/interop/json_value.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/creation.h"

namespace oar::cli {
namespace {

using interop::FileKind;
using interop::Port;

std::string names_of(const std::vector<Port>& inputs) {
  std::vector<std::string> texts;
  for (const Port& input : inputs) texts.push_back(input.str());
  return join(texts, "; ");
}

const Port& find_input(const std::vector<Port>& inputs, const std::string& name,
                       const std::string& what) {
  if (name.empty() && inputs.size() == 1) return inputs[0];
  for (const Port& input : inputs)
    if (input.name == name) return input;
  fail(ErrorKind::InvalidArgument, "{} {}.\nhint: The model's inputs are {}.", what,
       name.empty() ? "does not say for which input it is"
                    : format("is for an input '{}', which the model does not have", name),
       names_of(inputs));
}

// ---- JSON ----------------------------------------------------------------------------------------

void append_numbers(const JsonValue& value, size_t depth, std::vector<int64_t>& sizes,
                    std::vector<double>& numbers) {
  if (!value.is_list()) {
    user_check(depth == sizes.size(), ErrorKind::InvalidArgument,
               "its lists are of different depths");
    numbers.push_back(value.is_flag() ? (value.flag() ? 1.0 : 0.0) : value.number());
    return;
  }
  const auto size = static_cast<int64_t>(value.list().size());
  if (depth == sizes.size() && numbers.empty()) sizes.push_back(size);
  user_check(depth < sizes.size() && sizes[depth] == size, ErrorKind::InvalidArgument,
             "its lists are of different lengths");
  for (const JsonValue& item : value.list()) append_numbers(item, depth + 1, sizes, numbers);
}

Tensor tensor_of(const JsonValue& value, DType dtype) {
  std::vector<int64_t> sizes;
  std::vector<double> numbers;
  append_numbers(value, 0, sizes, numbers);
  Shape shape;
  for (const int64_t size : sizes) shape.push_back(size);
  return cast(Tensor::from_vector(numbers, Dims(shape), DType::Float64), dtype);
}

// ---- files -----------------------------------------------------------------------------------------

struct Part {
  Tensor tensor;
  std::string file;
};
using Given = std::map<std::string, std::vector<Part>>;  // several files of an input make a batch

void check_dtype(Tensor& tensor, const Port& input, const std::string& file,
                 const InputOptions& options) {
  if (!input.dtype || tensor.dtype() == *input.dtype) return;
  user_check(
      options.cast, ErrorKind::InvalidArgument,
      "\"{}\" is {}, but the model takes {}.\nhint: Save the array as {}, or pass --cast to convert it.",
      file, tensor.describe(), input.str(), name_of(input.likely_dtype()));
  tensor = cast(tensor, input.likely_dtype());
}

bool is_image(const std::string& file) {
  if (!std::filesystem::is_regular_file(file)) return false;
  const FileKind kind = interop::guess_kind(file);
  return kind == FileKind::Jpeg || kind == FileKind::Png;
}

void check_shape(const Tensor& tensor, const Port& input, const std::string& what,
                 const std::string& file) {
  if (!input.shape) return;
  bool fits = tensor.rank() == static_cast<int>(input.shape->size());
  for (size_t axis = 0; fits && axis < input.shape->size(); ++axis)
    fits = (*input.shape)[axis] < 0 || Dim((*input.shape)[axis]) == tensor.dims()[axis];
  user_check(fits, ErrorKind::InvalidArgument,
             "{} is {}, but the model takes {}.\nhint: Pass an array of that shape{}.", what,
             tensor.describe(), input.str(),
             is_image(file) ? "; images take --size HxW and --layout chw or hwc" : "");
}

void add_array(Given& given, const Port& input, Tensor tensor, const std::string& file,
               const InputOptions& options) {
  check_dtype(tensor, input, file, options);
  given[input.name].push_back({std::move(tensor), file});
}

void add_json(Given& given, const std::vector<Port>& inputs, const std::string& name,
              const std::string& file) {
  const JsonValue value = JsonValue::parse(read_file(file));
  if (!value.is_object()) {
    const Port& input = find_input(inputs, name, format("\"{}\"", file));
    given[input.name].push_back({tensor_of(value, input.likely_dtype()), file});
    return;
  }
  for (const auto& [key, content] : value.object()) {
    const Port& input = find_input(inputs, key, format("\"{}\"", file));
    given[input.name].push_back({tensor_of(content, input.likely_dtype()), file});
  }
}

void add_file(Given& given, const std::vector<Port>& inputs, const std::string& name,
              const std::string& file, const InputOptions& options) {
  const FileKind kind = interop::guess_kind(file);
  const std::string what = format("\"{}\"", file);
  switch (kind) {
    case FileKind::Npy:
      return add_array(given, find_input(inputs, name, what), load_npy(file), file, options);
    case FileKind::Npz: {
      const NamedTensors arrays = load_npz(file);
      if (!name.empty() && arrays.size() == 1)
        return add_array(given, find_input(inputs, name, what), arrays.begin()->second, file,
                         options);
      for (const auto& [array, tensor] : arrays)
        add_array(given, find_input(inputs, array, what), tensor, file, options);
      return;
    }
    case FileKind::Jpeg:
    case FileKind::Png: {
      const Port& input = find_input(inputs, name, what);
      given[input.name].push_back({image_input(file, input, options), file});
      return;
    }
    case FileKind::Json:
      return add_json(given, inputs, name, file);
    default:
      fail(
          ErrorKind::InvalidArgument,
          "\"{}\" is {}, which is no input.\nhint: Inputs are .npy, .npz, JPEG, PNG and JSON files.",
          file, interop::described(kind));
  }
}

// ---- random numbers --------------------------------------------------------------------------------

Shape parse_shape(const std::string& text) {
  Shape shape;
  for (const std::string_view word : split(text, ',')) {
    const std::string_view digits = trim(word);
    int64_t size = -1;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
    user_check(error == std::errc() && end == digits.data() + digits.size() && size >= 0,
               ErrorKind::InvalidArgument,
               "'{}' is no shape.\nhint: Write the sizes with commas: --shape x=1,3,224,224", text);
    shape.push_back(size);
  }
  return shape;
}

Shape shape_of_random(const Port& input, const Shape* wanted, int64_t batch) {
  if (wanted) return *wanted;
  Shape shape;
  bool open = !input.shape;
  for (size_t axis = 0; input.shape && axis < input.shape->size(); ++axis) {
    const int64_t size = (*input.shape)[axis];
    open |= axis > 0 && size < 0;
    shape.push_back(size < 0 ? batch : size);
  }
  user_check(
      !open, ErrorKind::InvalidArgument,
      "the input {} has open sizes, so nobody knows how large random numbers for it should be."
      "\nhint: Pass its shape, e.g. --shape {}=1,3,224,224",
      input.str(), input.name);
  return shape;
}

Tensor random_input(const Port& input, const Shape* wanted, const InputOptions& options,
                    std::mt19937_64& engine) {
  const Tensor wide = zeros(shape_of_random(input, wanted, options.batch), DType::Float64);
  std::normal_distribution<double> normal;
  // Integers are mostly indices, and 0 and 1 are indices of nearly everything.
  for (double& x : std::span(wide.data<double>(), static_cast<size_t>(wide.numel().value())))
    x = is_floating(input.likely_dtype()) ? normal(engine) : static_cast<double>(engine() & 1);
  return input.likely_dtype() == DType::Float64 ? wide : cast(wide, input.likely_dtype());
}

Tensor joined(const std::vector<Part>& parts) {
  if (parts.size() == 1) return parts[0].tensor;
  std::vector<Tensor> tensors;
  for (const Part& part : parts) tensors.push_back(part.tensor);
  return concat(tensors, 0);
}

}  // namespace

std::pair<std::string, std::string> split_name(const std::string& word) {
  const size_t equals = word.find('=');
  if (equals == std::string::npos || std::filesystem::exists(word)) return {"", word};
  return {word.substr(0, equals), word.substr(equals + 1)};
}

std::vector<Tensor> model_inputs(const std::vector<Port>& inputs, const InputOptions& options) {
  Given given;
  for (const std::string& word : options.files) {
    const auto [name, file] = split_name(word);
    interop::naming_file(file, [&] { add_file(given, inputs, name, file, options); });
  }
  std::map<std::string, Shape> shapes;
  for (const std::string& word : options.shapes) {
    const auto [name, text] = split_name(word);
    shapes[find_input(inputs, name, format("--shape {}", word)).name] = parse_shape(text);
  }
  std::mt19937_64 engine(options.seed);
  std::vector<Tensor> made;
  for (const Port& input : inputs) {
    if (const auto found = given.find(input.name); found != given.end()) {
      made.push_back(joined(found->second));
      check_shape(made.back(), input, format("\"{}\"", found->second[0].file),
                  found->second[0].file);
      continue;
    }
    user_check(
        options.random, ErrorKind::InvalidArgument,
        "nothing is given for the input {}.\nhint: Pass --input {}=FILE (.npy, .npz, an image or JSON), or "
        "--random for random numbers.",
        input.str(), input.name);
    const auto wanted = shapes.find(input.name);
    made.push_back(
        random_input(input, wanted == shapes.end() ? nullptr : &wanted->second, options, engine));
    check_shape(made.back(), input, format("--shape of '{}'", input.name), "");
  }
  return made;
}

}  // namespace oar::cli
