#include "oar/nn/data.h"

#include <algorithm>
#include <filesystem>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/base/file.h"
#include "oar/base/string_util.h"
#include "oar/media/decode.h"
#include "oar/nn/numpy_random.h"
#include "oar/ops/core/operators.h"
#include "oar/ops/gen/concat.h"
#include "oar/ops/gen/copy.h"
#include "oar/ops/gen/random.h"
#include "oar/ops/gen/shape.h"
#include "oar/ops/gen/slice.h"

namespace oar::nn {
namespace {

void check_index(int64_t index, int64_t size) {
  user_check(index >= 0 && index < size, ErrorKind::OutOfRange, "there is no sample {} among {}.",
             index, size);
}

std::vector<std::string> sorted_names(const std::string& folder, bool folders) {
  std::vector<std::string> names;
  std::error_code problem;
  for (const auto& entry : std::filesystem::directory_iterator(folder, problem))
    if (entry.is_directory() == folders) names.push_back(entry.path().filename().string());
  user_check(!problem, ErrorKind::NotFound, "the folder '{}' cannot be read: {}.", folder,
             problem.message());
  std::sort(names.begin(), names.end());
  return names;
}

bool is_image_name(const std::string& name) {
  const std::string lower = to_lower(name);
  return lower.ends_with(".jpg") || lower.ends_with(".jpeg") || lower.ends_with(".png");
}

}  // namespace

TensorDataset::TensorDataset(std::vector<Tensor> tensors) : tensors_(std::move(tensors)) {
  user_check(!tensors_.empty(), ErrorKind::InvalidArgument, "a dataset needs a tensor.");
  for (const Tensor& tensor : tensors_)
    user_check(tensor.defined() && tensor.rank() > 0 && same(tensor.dim(0), tensors_[0].dim(0)),
               ErrorKind::InvalidArgument, "{} and {} differ in the number of samples.",
               tensors_[0].describe(), tensor.describe());
}

int64_t TensorDataset::size() const { return tensors_[0].dim(0).value(); }

Sample TensorDataset::get(int64_t index) const {
  check_index(index, size());
  Sample sample;
  for (const Tensor& tensor : tensors_)
    sample.push_back(squeeze(slice(tensor, {0}, {index}, {index + 1}), IntArgs{0}));
  return sample;
}

ImageFolder::ImageFolder(const std::string& root, ImageFolderOptions options)
    : classes_(sorted_names(root, true)), options_(std::move(options)) {
  for (size_t i = 0; i < classes_.size(); ++i) {
    const std::string folder = root + "/" + classes_[i];
    for (const std::string& name : sorted_names(folder, false))
      if (is_image_name(name))
        files_.emplace_back(format("{}/{}", folder, name), static_cast<int64_t>(i));
  }
  user_check(!files_.empty(), ErrorKind::InvalidArgument,
             "'{}' has no folders with JPEG or PNG files.\nhint: Each class is a folder in it.",
             root);
}

Sample ImageFolder::get(int64_t index) const {
  check_index(index, size());
  const auto& [path, label] = files_[static_cast<size_t>(index)];
  const std::string file = read_file(path);
  Tensor image;
  try {
    if (options_.size) {
      const media::ImageInfo info = media::image_info(file);
      image =
          media::decode_resized(file, {0, 0, info.height, info.width},
                                {.height = options_.size->first, .width = options_.size->second});
    } else {
      image = media::decode_image(file, options_.channels);
    }
  } catch (const Error& error) {
    fail(error.kind(), "\"{}\" cannot be read: {}\nhint: {}", path, error.text(), error.hint());
  }
  if (options_.transform)
    image = options_.transform(image);
  else
    image = assign(transpose(cast(image, DType::Float32) / 255.0, {2, 0, 1}));
  return {image, Tensor::scalar(label, DType::Int64)};
}

std::vector<int64_t> SequenceSampler::order() {
  std::vector<int64_t> numbers(static_cast<size_t>(size_));
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  return numbers;
}

RandomSampler::RandomSampler(int64_t size, bool replacement, std::optional<int64_t> num_samples)
    : total_(size), num_samples_(num_samples.value_or(size)), replacement_(replacement) {
  user_check(num_samples_ > 0 && (replacement || num_samples_ <= total_),
             ErrorKind::InvalidArgument,
             "{} samples cannot be drawn from {}{}.\nhint: Pass fewer, or replacement = true.",
             num_samples_, total_, replacement ? "" : " without replacement");
}

std::vector<int64_t> RandomSampler::order() {
  NumpyRandom& random = NumpyRandom::shared();
  if (replacement_) return random.randint(0, total_, static_cast<size_t>(num_samples_));
  std::vector<int64_t> numbers = random.permutation(total_);
  numbers.resize(static_cast<size_t>(num_samples_));
  return numbers;
}

SubsetRandomSampler::SubsetRandomSampler(std::vector<int64_t> indices)
    : indices_(std::move(indices)) {
  user_check(!indices_.empty(), ErrorKind::InvalidArgument, "there are no samples to choose from.");
}

std::vector<int64_t> SubsetRandomSampler::order() {
  std::vector<int64_t> numbers;
  for (const int64_t place : randperm(size(), DType::Int64).to_vector<int64_t>())
    numbers.push_back(indices_[static_cast<size_t>(place)]);
  return numbers;
}

Batch stacked(const std::vector<Sample>& samples) {
  user_check(!samples.empty(), ErrorKind::InvalidArgument, "there are no samples to stack.");
  Batch batch;
  for (size_t i = 0; i < samples[0].size(); ++i) {
    std::vector<Tensor> parts;
    for (const Sample& sample : samples) {
      user_check(sample.size() == samples[0].size(), ErrorKind::InvalidArgument,
                 "samples of one batch have {} and {} tensors.", samples[0].size(), sample.size());
      parts.push_back(sample[i]);
    }
    batch.push_back(stack(parts, 0));
  }
  return batch;
}

}  // namespace oar::nn
