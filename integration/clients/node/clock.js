'use strict';

// The wall clock, in microseconds, the same in every process. performance.timeOrigin is not: Node reads two clocks one after the other to make it,
// and a process that loses its processor in between is off by as much. Here the wall clock is read first, so that its distance from the
// monotonic one never comes out too large; of 20 ms of readings the largest is right to about a microsecond.
let distance = -Infinity;
for (const began = performance.now(); performance.now() - began < 20;) {
  const wall = Date.now();
  distance = Math.max(distance, wall - performance.now());
}

exports.nowMicros = () => Math.floor((distance + performance.now()) * 1000);
