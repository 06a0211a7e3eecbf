// Package amqp reads and writes AMQP 0-9-1 as octets: frames, methods, field tables and
// content properties. It does no I/O, holds no state and starts no goroutines. Every
// function may be called concurrently.
//
// # Shapes
//
//	stream   ─ ParseFrame ─► Frame{Type, Channel, Payload}
//	method   ─ PeekMethod ─► MethodID ─► ParsePublish, ParseAck, ... (hot path)
//	                                  └► ParseMethod ─► *QueueDeclare, ... (the rest)
//	header   ─ ParseContentHeader ─► raw property list ─► ViewProperties, ParseProperties
//	body     ─ the payload itself
//
// Each method has a struct that is named after it. Its fields are the arguments, with the
// specification's names. The connection enforces the order of frames:
//
//	method ─── publish, return, deliver, get-ok ──► header ── size > 0 ──► body ─┐
//	 ▲   │                                            │                  ▲    │  │
//	 ├───┘ any other                                  │ size 0      more └────┘  │
//	 └────────────────────────────────────────────────┴──────────────────────────┘
//
// # Guarantees
//
//   - No input makes a parser panic. Lengths are compared with what is there. A table is
//     allocated only after its whole shape was checked against Limits, and a bad frame is
//     refused as soon as the seven octets before its payload have arrived.
//   - The hot path allocates nothing: ParseFrame, PeekMethod, ParsePublish,
//     ParseAck, ParseNack, ParseReject, ParseContentHeader, ViewProperties,
//     ValidateTable, AppendContent and the Append functions of single methods.
//     Their results alias the input. The results of other functions do not.
//   - What was parsed and is appended again parses as equal. Content properties that are
//     only passed on stay the same, octet for octet.
//   - Every error of a parser is an *Exception. Its code determines whether the channel or the
//     connection is closed.
//
// Appending trusts its caller: a short string of more than 255 octets, or a table value
// without an AMQP type, is a bug and panics. Names are checked where they come in.
//
// # Where the package follows RabbitMQ and not the specification
//
// The type letters of tables (AMQP 0-9-1 Errata), names in UTF-8, error texts, and the
// extensions that RabbitMQ's clients use. Where RabbitMQ closes the connection without an
// answer (unknown methods, malformed tables) Curfew sends 540 and 502.
package amqp
