// Passes of a DataLoader: threads that prepare batches ahead, and the order in which they are returned.
#include <algorithm>
#include <condition_variable>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include "oar/autograd/node.h"
#include "oar/base/error.h"
#include "oar/device/generator.h"
#include "oar/nn/data.h"
#include "oar/nn/numpy_random.h"

namespace oar::nn {

// One pass over the data. Batches are prepared by whoever is free, and returned in order.
class DataLoader::Pass {
 public:
  Pass(const Dataset& dataset, const DataLoaderOptions& options, std::vector<int64_t> order,
       int64_t first, uint64_t seed)
      : dataset_(dataset), options_(options), order_(std::move(order)), seed_(seed) {
    const auto samples = static_cast<int64_t>(order_.size());
    count_ = options.drop_last ? samples / options.batch_size
                               : (samples + options.batch_size - 1) / options.batch_size;
    started_ = returned_ = std::min(first, count_);
    for (int i = 0; i < options.num_workers; ++i) workers_.emplace_back([this] { work(); });
  }

  ~Pass() {
    {
      const std::lock_guard lock(mutex_);
      stopped_ = true;
    }
    free_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }
  Pass(const Pass&) = delete;
  Pass& operator=(const Pass&) = delete;

  // False at the end of the pass.
  bool next(Batch& batch) {
    if (returned_ == count_) return false;
    if (workers_.empty()) {
      batch = prepared(returned_);
      ++returned_;
      return true;
    }
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [&] { return done_.contains(returned_); });
    const auto place = done_.find(returned_);
    Outcome outcome = std::move(place->second);
    done_.erase(place);
    ++returned_;
    lock.unlock();
    free_.notify_all();
    if (outcome.error) std::rethrow_exception(outcome.error);
    batch = std::move(outcome.batch);
    return true;
  }

 private:
  struct Outcome {
    Batch batch;
    std::exception_ptr error;
  };

  void work() {
    while (true) {
      std::unique_lock lock(mutex_);
      const int64_t ahead = options_.prefetch_factor * options_.num_workers;
      free_.wait(lock,
                 [&] { return stopped_ || started_ == count_ || started_ - returned_ < ahead; });
      if (stopped_ || started_ == count_) return;
      const int64_t number = started_++;
      lock.unlock();
      Outcome outcome;
      try {
        const NumpyRandom::Own own(static_cast<uint32_t>(seed_) ^ static_cast<uint32_t>(number));
        outcome.batch = prepared(number);
      } catch (...) {
        outcome.error = std::current_exception();
      }
      lock.lock();
      done_.emplace(number, std::move(outcome));
      lock.unlock();
      ready_.notify_all();
    }
  }

  Batch prepared(int64_t number) const {
    const NoGrad off;
    // The random numbers of a batch: the same whichever thread prepares it.
    const generator::Detour own({seed_, static_cast<uint64_t>(number) << 40});
    const auto begin = static_cast<size_t>(number * options_.batch_size);
    const size_t end = std::min(order_.size(), begin + static_cast<size_t>(options_.batch_size));
    std::vector<Sample> samples;
    for (size_t i = begin; i < end; ++i) samples.push_back(dataset_.get(order_[i]));
    return options_.collate(samples);
  }

  const Dataset& dataset_;
  const DataLoaderOptions& options_;
  std::vector<int64_t> order_;
  uint64_t seed_;
  int64_t count_;

  std::mutex mutex_;
  std::condition_variable ready_, free_;
  int64_t started_, returned_;
  std::map<int64_t, Outcome> done_;
  bool stopped_ = false;
  std::vector<std::thread> workers_;
};

DataLoader::DataLoader(const Dataset& dataset, DataLoaderOptions options)
    : dataset_(dataset), options_(std::move(options)), sampler_(options_.sampler) {
  user_check(options_.batch_size > 0, ErrorKind::InvalidArgument,
             "batch_size must be positive, but is {}.", options_.batch_size);
  user_check(options_.num_workers >= 0 && options_.prefetch_factor > 0, ErrorKind::InvalidArgument,
             "num_workers must not be negative, and prefetch_factor must be positive.");
  user_check(!sampler_ || !options_.shuffle, ErrorKind::InvalidArgument,
             "shuffle and a sampler exclude each other.");
  if (sampler_) return;
  if (options_.shuffle)
    sampler_ = std::make_shared<RandomSampler>(dataset.size());
  else
    sampler_ = std::make_shared<SequenceSampler>(dataset.size());
}

DataLoader::~DataLoader() = default;

int64_t DataLoader::size() const {
  const int64_t samples = sampler_->size(), batch = options_.batch_size;
  return options_.drop_last ? samples / batch : (samples + batch - 1) / batch;
}

void DataLoader::start() {
  pass_.reset();
  const int64_t first = skip_.value_or(0);
  std::optional<StateTree> outside;
  if (skip_) {  // the order of that pass is drawn again, and the numbers outside stay as they are
    outside = random_states();
    set_random_states(random_);
  } else {
    random_ = random_states();
  }
  skip_.reset();
  const auto words = philox(generator::state().seed, ~static_cast<uint64_t>(passes_));
  const uint64_t seed = uint64_t{words[0]} << 32 | words[1];
  std::vector<int64_t> order = sampler_->order();
  if (outside) set_random_states(*outside);
  ++passes_;
  returned_ = first;
  pass_ = std::make_unique<Pass>(dataset_, options_, std::move(order), first, seed);
}

bool DataLoader::advance(Batch& batch) {
  bool found = false;
  try {
    found = pass_ && pass_->next(batch);
  } catch (...) {
    pass_.reset();  // its workers read the dataset, which the caller may change from here on
    throw;
  }
  if (!found) {
    pass_.reset();
    returned_.reset();
    return false;
  }
  ++*returned_;
  return true;
}

DataLoader::Iterator::Iterator(DataLoader& loader) : loader_(&loader) {
  loader.start();
  ++*this;
}

DataLoader::Iterator& DataLoader::Iterator::operator++() {
  if (!loader_->advance(batch_)) loader_ = nullptr;
  return *this;
}

StateTree DataLoader::state_dict() const {
  const bool within = skip_ || returned_;
  StateTree state;
  state.set("passes", skip_ || !returned_ ? passes_ : passes_ - 1);
  state.set("batches", within ? StateTree(skip_ ? *skip_ : *returned_) : StateTree());
  state.set("random", within ? random_ : StateTree());
  state.set("samplers", StateTree(StateTree::List{StateTree(), StateTree()}));
  state.set("dataset", StateTree());
  return state;
}

void DataLoader::load_state_dict(const StateTree& state) {
  const StateTree& batches = state.at("batches");
  const int64_t passes = state.at("passes").integer();
  pass_.reset();
  returned_.reset();
  passes_ = passes;
  skip_ = batches.is_none() ? std::nullopt : std::optional(batches.integer());
  random_ = state.at("random");
}

}  // namespace oar::nn
