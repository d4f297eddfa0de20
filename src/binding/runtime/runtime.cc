/* runtime.cc - the few functions of the C++ library that the binding calls, for the binaries that
 * are published: so these need no C++ library on the machine, and have none in them. A build from
 * source uses the compiler's own, and leaves this file out. That nothing else is called is checked
 * when they are made (scripts/binaries.mjs). */
#include <cstdlib>
#include <new>
#include <string>

/* The heap is the C library's. Without exceptions there is nobody to tell of its end. */
void *operator new(std::size_t size) {
  void *memory = std::malloc(size > 0 ? size : 1);
  if (memory == nullptr)
    std::abort();
  return memory;
}

void *operator new(std::size_t size, const std::nothrow_t &) noexcept {
  return std::malloc(size > 0 ? size : 1);
}

void *operator new[](std::size_t size) {
  return operator new(size);
}

void operator delete(void *memory) noexcept {
  std::free(memory);
}

void operator delete(void *memory, std::size_t) noexcept {
  std::free(memory);
}

void operator delete[](void *memory) noexcept {
  std::free(memory);
}

void operator delete[](void *memory, std::size_t) noexcept {
  std::free(memory);
}

const std::nothrow_t std::nothrow{};

template class std::basic_string<char>;
