// Package amqp is the AMQP 0-9-1 protocol as octets: frames, methods, field
// tables and content properties, parsed and appended. It does no I/O, holds no
// state and starts nothing; every function may be called concurrently.
//
// # Shapes
//
//	stream   ─ ParseFrame ─► Frame{Type, Channel, Payload}
//	method   ─ PeekMethod ─► MethodID ─► ParsePublish, ParseAck, ... (hot path)
//	                                  └► ParseMethod ─► *QueueDeclare, ... (the rest)
//	header   ─ ParseContentHeader ─► raw property list ─► ViewProperties, ParseProperties
//	body     ─ the payload itself
//
// A struct stands for each method and is named after it; its fields are the
// arguments under the specification's names. In what order frames may come is
// the connection's to hold them to:
//
//	method ─── publish, return, deliver, get-ok ──► header ── size > 0 ──► body ─┐
//	 ▲   │                                            │                  ▲    │  │
//	 ├───┘ any other                                  │ size 0      more └────┘  │
//	 └────────────────────────────────────────────────┴──────────────────────────┘
//
// # Guarantees
//
//   - No input makes a parser panic. Lengths are held against what is there; a
//     table is allocated only once its whole shape has been held against Limits,
//     and a frame is refused by the seven octets before its payload.
//   - The hot path allocates nothing: ParseFrame, PeekMethod, ParsePublish,
//     ParseAck, ParseNack, ParseReject, ParseContentHeader, ViewProperties,
//     ValidateTable, AppendContent and the Append functions of single methods.
//     What it returns aliases its input. What the others return does not.
//   - What was parsed and is appended again parses as equal. Content properties
//     that only pass through stay as they came, octet for octet.
//   - Every error of a parser is an *Exception, whose code says whether the
//     channel or the connection is lost.
//
// Appending trusts its caller: a short string of more than 255 octets, or a
// table value without an AMQP type, is a bug and panics. Names are checked where
// they enter.
//
// # Where it follows RabbitMQ rather than the specification
//
// Type letters of tables (AMQP 0-9-1 Errata), names in UTF-8, error texts, and
// the extensions that its clients use. Where RabbitMQ's reader gives up without a
// word (unknown methods, malformed tables) Curfew sends 540 and 502.
package amqp
