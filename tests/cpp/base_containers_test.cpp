#include <gtest/gtest.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <thread>
#include <unordered_set>
#include <utility>
#include <vector>

#include "oar/base/free_list.h"
#include "oar/base/function_ref.h"
#include "oar/base/hash.h"
#include "oar/base/intrusive.h"
#include "oar/base/scope_guard.h"
#include "oar/base/small_vector.h"

namespace oar {
namespace {

int twice(int x) { return 2 * x; }

TEST(FunctionRef, SeesEveryCallable) {
  const auto apply = [](FunctionRef<int(int)> f) { return f(4); };
  int sum = 0;
  EXPECT_EQ(apply(twice), 8);
  EXPECT_EQ(apply(&twice), 8);
  EXPECT_EQ(apply([&](int x) { return sum += x; }), 4);
  EXPECT_EQ(apply(std::function<int(int)>(twice)), 8);
  EXPECT_EQ(sum, 4);
  int counter = 0;
  auto count = [n = 0, &counter](int) mutable { return counter = ++n; };
  apply(count);
  apply(count);
  EXPECT_EQ(counter, 2);  // a view: the state is the callable's own
}

TEST(FunctionRef, DropsResultsAndPassesReferences) {
  const FunctionRef<void(int)> drops(twice);
  drops(1);
  auto set = [](std::unique_ptr<int> p, int& out) { out = *p; };
  const FunctionRef<void(std::unique_ptr<int>, int&)> takes(set);
  int out = 0;
  takes(std::make_unique<int>(5), out);
  EXPECT_EQ(out, 5);
}

template <class T>
T make(int i);
template <>
int make<int>(int i) {
  return i;
}
template <>
std::string make<std::string>(int i) {
  return "a string too long for its own small buffer " + std::to_string(i);
}

template <class T>
class SmallVectorOf : public testing::Test {};
using Elements = testing::Types<int, std::string>;
TYPED_TEST_SUITE(SmallVectorOf, Elements);

TYPED_TEST(SmallVectorOf, DoesWhatAVectorDoes) {
  using T = TypeParam;
  std::mt19937 random(1);
  SmallVector<T, 3> small;
  std::vector<T> wanted;
  for (int step = 0; step < 3000; ++step) {
    const T value = make<T>(step);
    const auto at = static_cast<std::ptrdiff_t>(random() % (wanted.size() + 1));
    switch (random() % 9) {
      case 0:
      case 1:
        small.push_back(value);
        wanted.push_back(value);
        break;
      case 2:
        small.insert(small.begin() + at, value);
        wanted.insert(wanted.begin() + at, value);
        break;
      case 3: {
        const std::vector<T> more = {value, value, make<T>(1)};
        small.insert(small.begin() + at, more.begin(), more.end());
        wanted.insert(wanted.begin() + at, more.begin(), more.end());
        break;
      }
      case 4:
      case 5:
        if (at < static_cast<std::ptrdiff_t>(wanted.size())) {
          small.erase(small.begin() + at);
          wanted.erase(wanted.begin() + at);
        }
        break;
      case 6:
        small.erase(small.begin() + at / 2, small.begin() + at);
        wanted.erase(wanted.begin() + at / 2, wanted.begin() + at);
        break;
      case 7:
        small.resize(random() % 8, value);
        wanted.resize(small.size(), value);
        break;
      default: {
        SmallVector<T, 3> copy(small);
        EXPECT_EQ(copy, small);
        SmallVector<T, 3> moved(std::move(small));
        EXPECT_TRUE(small.empty());  // NOLINT: what a moved-from vector is, is promised
        small = {make<T>(0)};
        small = std::move(moved);
        moved = copy;
        EXPECT_EQ(moved, small);
      }
    }
    ASSERT_TRUE(std::equal(small.begin(), small.end(), wanted.begin(), wanted.end())) << step;
  }
}

TEST(SmallVector, IsInlineUntilItIsFull) {
  SmallVector<int, 4> v = {1, 2, 3, 4};
  EXPECT_TRUE(v.is_inline());
  v.push_back(5);
  EXPECT_FALSE(v.is_inline());
  EXPECT_EQ(v, (SmallVector<int, 4>{1, 2, 3, 4, 5}));
  const int* heap = v.data();
  const SmallVector<int, 4> taken = std::move(v);
  EXPECT_EQ(taken.data(), heap);
}

TEST(SmallVector, TakesItsOwnElements) {
  SmallVector<std::string, 2> v = {make<std::string>(0), make<std::string>(1)};
  v.push_back(v[0]);
  EXPECT_EQ(v[2], make<std::string>(0));
  v.insert(v.begin(), v[1]);
  EXPECT_EQ(v[0], make<std::string>(1));
  v.resize(20, v[1]);
  EXPECT_EQ(v[19], make<std::string>(0));
  v.assign(3, v[0]);
  EXPECT_EQ(v[2], make<std::string>(1));
}

TEST(SmallVector, HoldsMoveOnlyElements) {
  SmallVector<std::unique_ptr<int>, 2> v;
  for (int i = 0; i < 9; ++i) {
    v.insert(v.begin(), std::make_unique<int>(i));
  }
  v.erase(v.begin());
  SmallVector<std::unique_ptr<int>, 2> w(std::move(v));
  EXPECT_EQ(w.size(), 8U);
  EXPECT_EQ(*w.front(), 7);
  EXPECT_EQ(*w.back(), 0);
}

TEST(SmallVector, ComparesSwapsAndReadsStreams) {
  SmallVector<int, 2> a = {1, 2, 3};
  SmallVector<int, 2> b = {1, 4};
  EXPECT_LT(a, b);
  EXPECT_NE(a, b);
  a.swap(b);
  EXPECT_GT(a, b);
  EXPECT_EQ(a.size(), 2U);
  const std::span<const int> view(b);
  EXPECT_EQ(std::accumulate(view.begin(), view.end(), 0), 6);
  std::istringstream in("4 5 6");
  const SmallVector<int, 2> read{std::istream_iterator<int>(in), std::istream_iterator<int>()};
  EXPECT_EQ(read, (SmallVector<int, 2>{4, 5, 6}));
  EXPECT_EQ((SmallVector<int, 2>(3))[2], 0);
  EXPECT_EQ(*b.rbegin(), 3);
}

class Node : public RefCounted, public FreeListed<Node> {
 public:
  explicit Node(int* alive) : alive_(alive) { ++*alive_; }
  void release() const {
    if (drop_reference()) {
      --*alive_;
      delete this;
    }
  }

 private:
  int* alive_;
};

TEST(Intrusive, CountsReferences) {
  int alive = 0;
  {
    Intrusive<Node> a = make_intrusive<Node>(&alive);
    Intrusive<Node> b = a;
    Intrusive<const Node> c = b;
    EXPECT_EQ(a->reference_count(), 3U);
    EXPECT_EQ(a, b);
    b.reset();
    a = std::move(a);
    EXPECT_EQ(c->reference_count(), 2U);
    Node* raw = a.detach();
    EXPECT_EQ(a, nullptr);
    const Intrusive<Node> again = Intrusive<Node>::adopt(raw);
    EXPECT_EQ(Intrusive<Node>(raw)->reference_count(), 3U);
    EXPECT_EQ(alive, 1);
  }
  EXPECT_EQ(alive, 0);
}

TEST(Intrusive, IsSharedBetweenThreads) {
  int alive = 0;
  {
    const Intrusive<Node> shared = make_intrusive<Node>(&alive);
    std::vector<std::thread> threads;
    for (int t = 0; t < 3; ++t) {
      threads.emplace_back([shared] {
        for (int i = 0; i < 1000; ++i) {
          const Intrusive<Node> copy = shared;
        }
      });
    }
    for (std::thread& thread : threads) {
      thread.join();
    }
    EXPECT_EQ(shared->reference_count(), 1U);
  }
  EXPECT_EQ(alive, 0);
}

struct Small : FreeListed<Small, 4> {
  virtual ~Small() = default;
  long value = 0;
};
struct Bigger : Small {
  char more[100] = {};
};
struct alignas(64) Aligned : FreeListed<Aligned> {
  char bytes[64] = {};
};

TEST(FreeList, RecyclesABoundedNumber) {
  auto* first = new Small;
  const auto address = reinterpret_cast<std::uintptr_t>(first);
  delete first;
  auto* second = new Small;
#if OAR_FREE_LISTS
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(second), address);
#endif
  static_cast<void>(address);
  delete second;
  std::vector<std::unique_ptr<Small>> many(100);
  for (auto& one : many) {
    one = std::make_unique<Small>();
  }
  const std::set<Small*> distinct = [&] {
    std::set<Small*> all;
    for (auto& one : many) {
      all.insert(one.get());
    }
    return all;
  }();
  EXPECT_EQ(distinct.size(), many.size());
}

TEST(FreeList, KeepsOtherSizesApart) {
  for (int i = 0; i < 10; ++i) {
    const std::unique_ptr<Small> bigger = std::make_unique<Bigger>();
    const auto small = std::make_unique<Small>();
    const auto aligned = std::make_unique<Aligned>();
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned.get()) % 64, 0U);
    alignas(Small) std::byte place[sizeof(Small)];
    auto* placed = new (place) Small;
    placed->~Small();
  }
}

TEST(FreeList, LetsOtherThreadsFree) {
  for (int round = 0; round < 10; ++round) {
    std::vector<std::unique_ptr<Small>> made;
    std::thread([&] {
      for (int i = 0; i < 20; ++i) {
        made.push_back(std::make_unique<Small>());
        made.back()->value = i;
      }
    }).join();
    std::thread([taken = std::move(made)]() mutable {
      for (size_t i = 0; i < 20; ++i) EXPECT_EQ(taken[i]->value, static_cast<long>(i));
      taken.clear();
    }).join();
  }
}

TEST(FreeList, OutlivesTheThreadsDestructors) {
  std::thread([] {
    // Made before the list is opened, so destroyed after the list is closed.
    static thread_local std::unique_ptr<Small> late;
    late = nullptr;
    auto early = std::make_unique<Small>();
    late = std::make_unique<Small>();
    late->value = 7;
    early.reset();
    EXPECT_EQ(late->value, 7);
  }).join();
}

TEST(ScopeGuard, RunsUnlessDismissed) {
  int runs = 0;
  {
    const ScopeGuard guard([&] { ++runs; });
    ScopeGuard dismissed([&] { ++runs; });
    dismissed.dismiss();
  }
  EXPECT_EQ(runs, 1);
}

TEST(Hash, TellsSmallShapesApart) {
  std::unordered_set<std::size_t> seen;
  for (int i = 0; i < 30; ++i) {
    for (int j = 0; j < 30; ++j) {
      seen.insert(hash_all(i, j));
      seen.insert(hash_range(std::vector<int>{i, j, 0}));
    }
  }
  EXPECT_EQ(seen.size(), 2U * 900U);
}

}  // namespace
}  // namespace oar
