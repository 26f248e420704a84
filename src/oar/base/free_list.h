// FreeListed<T>: gives T an operator new and delete that recycle blocks through a small list per
// thread. For objects that are created and freed once per op call, such as tensor handles.
//
// A block may be freed by a thread other than the one that allocated it: it then joins that thread's
// list. Blocks always come from ::operator new, so any list may return any of them to it.
#pragma once

#include <cstddef>
#include <new>

#include "oar/base/api.h"

#if defined(__SANITIZE_ADDRESS__)
#define OAR_FREE_LISTS 0  // the sanitizer must see every free, or it cannot see a use after it
#else
#define OAR_FREE_LISTS 1
#endif

namespace OAR_API oar {

namespace detail {
struct FreeBlock {
  FreeBlock* next;
};

// Trivial, so that it can still be read while the thread's destructors run.
struct FreeList {
  FreeBlock* head = nullptr;
  std::size_t length = 0;
  std::size_t limit = 0;  // 0 until opened, and again once the thread is ending
  bool closed = false;
};
}  // namespace detail

template <class T, std::size_t kCapacity = 256>
class FreeListed {
 public:
  static void* operator new(std::size_t size) {
    static_assert(sizeof(T) >= sizeof(Block));
    if (OAR_FREE_LISTS && size == sizeof(T)) [[likely]] {
      List& list = list_;
      if (Block* block = list.head; block != nullptr) [[likely]] {
        list.head = block->next;
        --list.length;
        return block;
      }
    }
    return allocate(size);
  }

  static void operator delete(void* pointer, std::size_t size) noexcept {
    if (OAR_FREE_LISTS && size == sizeof(T)) [[likely]] {  // a derived class has another size
      List& list = list_;
      if (list.length < list.limit || open(list)) [[likely]] {
        list.head = ::new (pointer) Block{list.head};
        ++list.length;
        return;
      }
    }
    deallocate(pointer, size);
  }

  // A class that declares operator new hides the placement form; containers need it.
  static void* operator new(std::size_t, void* where) noexcept { return where; }
  static void operator delete(void*, void*) noexcept {}

 protected:
  FreeListed() = default;
  ~FreeListed() = default;

 private:
  using Block = detail::FreeBlock;
  using List = detail::FreeList;

  // Empties the list at thread exit. Separate from the list: objects freed by destructors that run
  // later find it closed and use ::operator delete directly.
  struct Closer {
    ~Closer() {
      List& list = list_;
      list.closed = true;
      list.limit = 0;
      while (Block* block = list.head) {
        list.head = block->next;
        --list.length;
        deallocate(block, sizeof(T));
      }
    }
  };

  [[gnu::noinline]] static bool open(List& list) noexcept {
    if (list.closed || list.limit != 0) {
      return false;
    }
    static thread_local Closer closer;
    static_cast<void>(closer);
    list.limit = kCapacity;
    return true;
  }

  static void* allocate(std::size_t size) {
    if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      return ::operator new(size, std::align_val_t{alignof(T)});
    } else {
      return ::operator new(size);
    }
  }

  static void deallocate(void* pointer, std::size_t size) noexcept {
    if constexpr (alignof(T) > __STDCPP_DEFAULT_NEW_ALIGNMENT__) {
      ::operator delete(pointer, size, std::align_val_t{alignof(T)});
    } else {
      ::operator delete(pointer, size);
    }
  }

  inline static constinit thread_local List list_{};
};

}  // namespace oar
