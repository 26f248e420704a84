// Intrusive reference counting. The count lives in the object, so a handle is one pointer and can
// be rebuilt from a raw one.
//
//   class Node : public RefCounted, public FreeListed<Node> {
//    public:
//     void release() const { if (drop_reference()) delete this; }
//   };
//   Intrusive<Node> node = make_intrusive<Node>();
//
// Each class writes release() itself: nothing here is virtual, and the class decides how it is
// destroyed (delete, a free list, a return to an owner).
#pragma once

#include <atomic>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "oar/base/api.h"

namespace OAR_RUNTIME_API oar {

class RefCounted {
 public:
  // Relaxed: the copier of a handle already has one, so the object is visible to it.
  void retain() const noexcept { count_.fetch_add(1, std::memory_order_relaxed); }

  std::uint32_t reference_count() const noexcept { return count_.load(std::memory_order_acquire); }

 protected:
  // Starts with the one reference that make_intrusive or Intrusive::adopt takes over.
  RefCounted() noexcept = default;
  // A copy is a new object with its own count.
  RefCounted(const RefCounted&) noexcept {}
  RefCounted& operator=(const RefCounted&) noexcept { return *this; }
  ~RefCounted() = default;

  // True for the last reference. Release orders our writes before the destruction that another
  // thread may do; acquire orders theirs before ours.
  bool drop_reference() const noexcept {
    return count_.fetch_sub(1, std::memory_order_acq_rel) == 1;
  }

 private:
  mutable std::atomic<std::uint32_t> count_{1};
};

template <class T>
class Intrusive {
 public:
  using element_type = T;

  constexpr Intrusive() noexcept = default;
  constexpr Intrusive(std::nullptr_t) noexcept {}  // implicit, as for other pointers
  // Shares: adds a reference.
  explicit Intrusive(T* object) noexcept : object_(object) { retain(); }
  Intrusive(const Intrusive& other) noexcept : object_(other.object_) { retain(); }
  Intrusive(Intrusive&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Intrusive(const Intrusive<U>& other) noexcept : object_(other.get()) {  // implicit
    retain();
  }
  template <class U>
    requires std::is_convertible_v<U*, T*>
  Intrusive(Intrusive<U>&& other) noexcept : object_(other.detach()) {}  // implicit
  ~Intrusive() {
    if (object_ != nullptr) {
      object_->release();
    }
  }

  Intrusive& operator=(const Intrusive& other) noexcept {
    Intrusive(other).swap(*this);
    return *this;
  }
  Intrusive& operator=(Intrusive&& other) noexcept {
    Intrusive(std::move(other)).swap(*this);
    return *this;
  }

  // Takes over a reference that the caller holds.
  static Intrusive adopt(T* object) noexcept {
    Intrusive handle;
    handle.object_ = object;
    return handle;
  }
  // Passes the reference to the caller, who must release it.
  [[nodiscard]] T* detach() noexcept { return std::exchange(object_, nullptr); }

  void reset() noexcept { Intrusive().swap(*this); }
  void swap(Intrusive& other) noexcept { std::swap(object_, other.object_); }

  T* get() const noexcept { return object_; }
  T& operator*() const noexcept { return *object_; }
  T* operator->() const noexcept { return object_; }
  explicit operator bool() const noexcept { return object_ != nullptr; }

  friend bool operator==(const Intrusive& a, const Intrusive& b) noexcept {
    return a.object_ == b.object_;
  }
  friend bool operator==(const Intrusive& a, std::nullptr_t) noexcept {
    return a.object_ == nullptr;
  }
  friend std::strong_ordering operator<=>(const Intrusive& a, const Intrusive& b) noexcept {
    return std::compare_three_way{}(a.object_, b.object_);
  }

 private:
  void retain() const noexcept {
    if (object_ != nullptr) {
      object_->retain();
    }
  }

  T* object_ = nullptr;
};

template <class T, class... Args>
Intrusive<T> make_intrusive(Args&&... args) {
  return Intrusive<T>::adopt(new T(std::forward<Args>(args)...));
}

}  // namespace oar

template <class T>
struct std::hash<oar::Intrusive<T>> {
  std::size_t operator()(const oar::Intrusive<T>& handle) const noexcept {
    return std::hash<T*>{}(handle.get());
  }
};
