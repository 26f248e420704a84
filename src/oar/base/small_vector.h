// SmallVector<T, N>: a vector whose first N elements need no heap. For shapes, strides and argument
// lists, which are nearly always short and created on every op call.
#pragma once

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

#include "oar/base/api.h"

namespace OAR_RUNTIME_API oar {

template <class T, std::size_t N>
class SmallVector {
  static_assert(N > 0);
  // Moves happen while the vector is inconsistent; a throwing move could not be undone.
  static_assert(std::is_nothrow_move_constructible_v<T>);
  static constexpr bool kTrivial =
      std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>;

 public:
  using value_type = T;
  using size_type = std::size_t;
  using difference_type = std::ptrdiff_t;
  using reference = T&;
  using const_reference = const T&;
  using pointer = T*;
  using const_pointer = const T*;
  using iterator = T*;
  using const_iterator = const T*;
  using reverse_iterator = std::reverse_iterator<iterator>;
  using const_reverse_iterator = std::reverse_iterator<const_iterator>;

  SmallVector() noexcept : data_(inline_data()) {}
  explicit SmallVector(size_type count) : SmallVector() { resize(count); }
  SmallVector(size_type count, const T& value) : SmallVector() { resize(count, value); }
  SmallVector(std::initializer_list<T> values) : SmallVector(values.begin(), values.end()) {}
  template <std::input_iterator It>
  SmallVector(It first, It last) : SmallVector() {
    append(first, last);
  }
  SmallVector(const SmallVector& other) : SmallVector() { append(other.begin(), other.end()); }
  SmallVector(SmallVector&& other) noexcept : SmallVector() { take(other); }
  ~SmallVector() {
    std::destroy_n(data_, size_);
    free_heap();
  }

  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) {
      assign(other.begin(), other.end());
    }
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      clear();
      take(other);
    }
    return *this;
  }
  SmallVector& operator=(std::initializer_list<T> values) {
    assign(values.begin(), values.end());
    return *this;
  }
  // The range must not be part of this vector.
  template <std::input_iterator It>
  void assign(It first, It last) {
    clear();
    append(first, last);
  }
  void assign(size_type count, const T& value) {
    T copy(value);  // value may be an element
    clear();
    resize(count, copy);
  }

  size_type size() const noexcept { return size_; }
  bool empty() const noexcept { return size_ == 0; }
  size_type capacity() const noexcept { return capacity_; }
  bool is_inline() const noexcept { return data_ == inline_data(); }
  T* data() noexcept { return data_; }
  const T* data() const noexcept { return data_; }

  T& operator[](size_type i) { return data_[i]; }
  const T& operator[](size_type i) const { return data_[i]; }
  T& front() { return data_[0]; }
  const T& front() const { return data_[0]; }
  T& back() { return data_[size_ - 1]; }
  const T& back() const { return data_[size_ - 1]; }

  iterator begin() noexcept { return data_; }
  iterator end() noexcept { return data_ + size_; }
  const_iterator begin() const noexcept { return data_; }
  const_iterator end() const noexcept { return data_ + size_; }
  const_iterator cbegin() const noexcept { return begin(); }
  const_iterator cend() const noexcept { return end(); }
  reverse_iterator rbegin() noexcept { return reverse_iterator(end()); }
  reverse_iterator rend() noexcept { return reverse_iterator(begin()); }
  const_reverse_iterator rbegin() const noexcept { return const_reverse_iterator(end()); }
  const_reverse_iterator rend() const noexcept { return const_reverse_iterator(begin()); }

  void reserve(size_type count) {
    if (count > capacity_) {
      grow_to(count);
    }
  }
  void clear() noexcept {
    std::destroy_n(data_, size_);
    size_ = 0;
  }

  void push_back(const T& value) { emplace_back(value); }
  void push_back(T&& value) { emplace_back(std::move(value)); }
  template <class... Args>
  T& emplace_back(Args&&... args) {
    if (size_ == capacity_) [[unlikely]] {
      return emplace_back_grown(std::forward<Args>(args)...);
    }
    T* slot = ::new (static_cast<void*>(data_ + size_)) T(std::forward<Args>(args)...);
    ++size_;
    return *slot;
  }
  void pop_back() {
    --size_;
    std::destroy_at(data_ + size_);
  }

  void resize(size_type count) {
    if (shrink_or_reserve(count)) {
      std::uninitialized_value_construct(data_ + size_, data_ + count);
      size_ = to_size(count);
    }
  }
  void resize(size_type count, const T& value) {
    if (count <= size_) {
      shrink_or_reserve(count);
      return;
    }
    T copy(value);  // value may be an element, which growing moves
    shrink_or_reserve(count);
    std::uninitialized_fill(data_ + size_, data_ + count, copy);
    size_ = to_size(count);
  }

  template <std::input_iterator It>
  void append(It first, It last) {
    if constexpr (std::forward_iterator<It>) {
      const auto count = static_cast<size_type>(std::distance(first, last));
      reserve(size_ + count);
      std::uninitialized_copy(first, last, data_ + size_);
      size_ += to_size(count);
    } else {
      for (; first != last; ++first) {
        emplace_back(*first);
      }
    }
  }

  // Appends, then rotates into place: one code path, whatever T is and wherever the value lives.
  iterator insert(const_iterator where, const T& value) { return emplace(where, value); }
  iterator insert(const_iterator where, T&& value) { return emplace(where, std::move(value)); }
  template <class... Args>
  iterator emplace(const_iterator where, Args&&... args) {
    const size_type index = static_cast<size_type>(where - data_);
    emplace_back(std::forward<Args>(args)...);
    std::rotate(data_ + index, end() - 1, end());
    return data_ + index;
  }
  // The range must not be part of this vector.
  template <std::input_iterator It>
  iterator insert(const_iterator where, It first, It last) {
    const size_type index = static_cast<size_type>(where - data_);
    const size_type old_size = size_;
    append(first, last);
    std::rotate(data_ + index, data_ + old_size, end());
    return data_ + index;
  }
  iterator insert(const_iterator where, size_type count, const T& value) {
    const size_type index = static_cast<size_type>(where - data_);
    const size_type old_size = size_;
    resize(old_size + count, value);
    std::rotate(data_ + index, data_ + old_size, end());
    return data_ + index;
  }

  iterator erase(const_iterator where) { return erase(where, where + 1); }
  iterator erase(const_iterator first, const_iterator last) {
    T* hole = data_ + (first - data_);
    T* rest = data_ + (last - data_);
    if (hole != rest) {
      T* new_end = std::move(rest, end(), hole);
      std::destroy(new_end, end());
      size_ = static_cast<std::uint32_t>(new_end - data_);
    }
    return hole;
  }

  void swap(SmallVector& other) noexcept { std::swap(*this, other); }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }
  friend auto operator<=>(const SmallVector& a, const SmallVector& b)
    requires std::three_way_comparable<T>
  {
    return std::lexicographical_compare_three_way(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  T* inline_data() noexcept { return reinterpret_cast<T*>(inline_); }
  const T* inline_data() const noexcept { return reinterpret_cast<const T*>(inline_); }

  static std::uint32_t to_size(size_type count) {
    if (count > UINT32_MAX) [[unlikely]] {
      throw std::bad_array_new_length();
    }
    return static_cast<std::uint32_t>(count);
  }

  static T* allocate(size_type count) { return std::allocator<T>().allocate(to_size(count)); }
  void free_heap() noexcept {
    if (!is_inline()) {
      std::allocator<T>().deallocate(data_, capacity_);
    }
  }

  static void relocate(T* from, size_type count, T* to) noexcept {
    if constexpr (kTrivial) {
      if (count != 0) {
        std::memcpy(static_cast<void*>(to), static_cast<const void*>(from), count * sizeof(T));
      }
    } else {
      std::uninitialized_move_n(from, count, to);
      std::destroy_n(from, count);
    }
  }

  // Moves the elements to a new heap block, which replaces the old one.
  void move_into(T* block, size_type capacity) noexcept {
    relocate(data_, size_, block);
    free_heap();
    data_ = block;
    capacity_ = static_cast<std::uint32_t>(capacity);
  }

  size_type grown_capacity(size_type wanted) const {
    return std::min<size_type>(std::max<size_type>(wanted, size_type{capacity_} * 2),
                               std::max<size_type>(wanted, UINT32_MAX));
  }

  [[gnu::noinline]] void grow_to(size_type wanted) {
    const size_type capacity = grown_capacity(wanted);
    move_into(allocate(capacity), capacity);
  }

  // Constructs before moving the old elements: an argument may be one of them.
  template <class... Args>
  [[gnu::noinline]] T& emplace_back_grown(Args&&... args) {
    const size_type capacity = grown_capacity(size_type{size_} + 1);
    T* block = allocate(capacity);
    T* slot = nullptr;
    try {
      slot = ::new (static_cast<void*>(block + size_)) T(std::forward<Args>(args)...);
    } catch (...) {
      std::allocator<T>().deallocate(block, capacity);
      throw;
    }
    move_into(block, capacity);
    ++size_;
    return *slot;
  }

  // Returns whether elements up to count are still missing.
  bool shrink_or_reserve(size_type count) {
    if (count <= size_) {
      std::destroy(data_ + count, end());
      size_ = static_cast<std::uint32_t>(count);
      return false;
    }
    reserve(count);
    return true;
  }

  // Empties other into this, which must hold no elements.
  void take(SmallVector& other) noexcept {
    if (other.is_inline()) {
      // An inline vector always fits: no capacity is below N.
      relocate(other.data_, other.size_, data_);
    } else {
      free_heap();
      data_ = std::exchange(other.data_, other.inline_data());
      capacity_ = std::exchange(other.capacity_, static_cast<std::uint32_t>(N));
    }
    size_ = std::exchange(other.size_, 0);
  }

  T* data_;
  std::uint32_t size_ = 0;
  std::uint32_t capacity_ = static_cast<std::uint32_t>(N);
  alignas(T) std::byte inline_[N * sizeof(T)];
};

}  // namespace oar
