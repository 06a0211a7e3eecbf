// Package amqp10 is the codec of AMQP 1.0: frames, performatives, SASL, values, and the sections of
// a message. It does no I/O and keeps no state.
//
// # Bounds
//
// What is parsed may come from anybody. A frame is no larger than the caller allows. A value nests
// 16 deep at most and has at most 4,096 elements in all, so that an array of elements without octets
// takes no more memory than its sender sent. Parsing never panics.
//
// # Ownership
//
// Binary values, payloads and sections alias the octets that were parsed: bodies are never copied.
// Strings and symbols are copies.
//
// # Performatives
//
// Each is a struct with one list of its fields (visit), which both the encoder and the decoder
// follow. The sections are those of the specification: AMQP 1.0 part 1 (values), part 2 (frames,
// performatives), part 3 (messages, outcomes), part 5 (SASL).
package amqp10
