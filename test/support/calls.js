// Many calls, some of them at the same time.

/** Calls `one(0)` to `one(count - 1)`, at most `width` of them in flight. */
export async function inFlight(width, count, one) {
  let next = 0;
  const worker = async () => {
    while (next < count) await one(next++);
  };
  await Promise.all(Array.from({ length: width }, worker));
}
