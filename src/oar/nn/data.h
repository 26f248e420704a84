// Datasets, samplers and the loader that turns them into batches. With the same seed the order is that of Python's oar.io.
//
//   nn::TensorDataset data({images, labels});
//   nn::DataLoader loader(data, {.batch_size = 32, .shuffle = true, .num_workers = 2});
//   for (const nn::Batch& batch : loader) { batch[0] is the images, batch[1] the labels }
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "oar/base/api.h"
#include "oar/formats/pickle.h"
#include "oar/media/image.h"
#include "oar/tensor/tensor.h"

namespace OAR_API oar {
namespace nn {

using Sample = std::vector<Tensor>;
using Batch = std::vector<Tensor>;

// Samples by number. `get` is called from the loader's threads, several at a time.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual int64_t size() const = 0;
  virtual Sample get(int64_t index) const = 0;
};

// Rows of tensors with a first axis of one size.
class TensorDataset : public Dataset {
 public:
  explicit TensorDataset(std::vector<Tensor> tensors);
  int64_t size() const override;
  Sample get(int64_t index) const override;

 private:
  std::vector<Tensor> tensors_;
};

struct ImageFolderOptions {
  media::Channels channels = media::Channels::Rgb;
  // Height and width that images are scaled to, in colour; without it they stay as in the file.
  std::optional<std::pair<int64_t, int64_t>> size = std::nullopt;
  // From an image, uint8 [height, width, channels], to what a sample has. Default: [channels, height, width] from 0 to 1.
  std::function<Tensor(const Tensor& image)> transform = nullptr;
};

// Images in folders, one for each class: root/cat/1.jpg is of class "cat". Classes and files are sorted by name.
class ImageFolder : public Dataset {
 public:
  explicit ImageFolder(const std::string& root, ImageFolderOptions options = {});
  int64_t size() const override { return static_cast<int64_t>(files_.size()); }
  // The image, and the number of its class as int64.
  Sample get(int64_t index) const override;
  const std::vector<std::string>& classes() const { return classes_; }

 private:
  std::vector<std::string> classes_;
  std::vector<std::pair<std::string, int64_t>> files_;
  ImageFolderOptions options_;
};

// The numbers of samples for one pass.
class Sampler {
 public:
  virtual ~Sampler() = default;
  virtual int64_t size() const = 0;
  virtual std::vector<int64_t> order() = 0;
};

class SequenceSampler : public Sampler {
 public:
  explicit SequenceSampler(int64_t size) : size_(size) {}
  int64_t size() const override { return size_; }
  std::vector<int64_t> order() override;

 private:
  int64_t size_;
};

// All in random order, or some drawn with replacement. Follows NumpyRandom::shared().
class RandomSampler : public Sampler {
 public:
  explicit RandomSampler(int64_t size, bool replacement = false,
                         std::optional<int64_t> num_samples = std::nullopt);
  int64_t size() const override { return num_samples_; }
  std::vector<int64_t> order() override;

 private:
  int64_t total_, num_samples_;
  bool replacement_;
};

// Chosen samples in random order. Follows the random numbers of ops.
class SubsetRandomSampler : public Sampler {
 public:
  explicit SubsetRandomSampler(std::vector<int64_t> indices);
  int64_t size() const override { return static_cast<int64_t>(indices_.size()); }
  std::vector<int64_t> order() override;

 private:
  std::vector<int64_t> indices_;
};

// Samples to a batch: stacks each of their tensors.
Batch stacked(const std::vector<Sample>& samples);

struct DataLoaderOptions {
  int64_t batch_size = 1;
  bool shuffle = false;
  bool drop_last = false;
  int num_workers = 0;          // threads that prepare batches; 0: this one does
  int64_t prefetch_factor = 2;  // batches that each of them prepares ahead
  std::function<Batch(const std::vector<Sample>&)> collate = stacked;
  std::shared_ptr<Sampler> sampler = nullptr;  // in place of shuffle
};

// Batches of a dataset, which must outlive it. The batches and their order do not depend on the number of workers: random numbers
// that ops draw inside of `get` and `collate` belong to the batch. (NumpyRandom::shared() has a stream for each batch in workers,
// and is the program's own without them, as in Python.) An error of a worker is thrown where its batch would have come.
class DataLoader {
 public:
  DataLoader(const Dataset& dataset, DataLoaderOptions options = {});
  ~DataLoader();
  DataLoader(const DataLoader&) = delete;
  DataLoader& operator=(const DataLoader&) = delete;

  int64_t size() const;  // batches in a pass

  class Iterator {
   public:
    const Batch& operator*() const { return batch_; }
    const Batch* operator->() const { return &batch_; }
    Iterator& operator++();
    bool operator!=(std::nullptr_t) const { return loader_ != nullptr; }

   private:
    friend class DataLoader;
    explicit Iterator(DataLoader& loader);
    DataLoader* loader_;
    Batch batch_;
  };
  // Begins a pass; one that is under way ends.
  Iterator begin() { return Iterator(*this); }
  std::nullptr_t end() const { return nullptr; }

  // Where it is in its data, as Python's DataLoader saves it: the random numbers at the beginning of a pass, and the batches that
  // have been returned. After loading, the next pass continues with the batch that would have come.
  StateTree state_dict() const;
  void load_state_dict(const StateTree& state);

 private:
  class Pass;
  void start();
  bool advance(Batch& batch);

  const Dataset& dataset_;
  DataLoaderOptions options_;
  std::shared_ptr<Sampler> sampler_;
  std::unique_ptr<Pass> pass_;
  int64_t passes_ = 0;               // begun so far
  std::optional<int64_t> returned_;  // batches of the pass that is under way
  std::optional<int64_t>
      skip_;  // batches of the next pass that were returned before the loaded state was saved
  StateTree random_;  // at the beginning of the pass
};

}  // namespace nn
}  // namespace oar
