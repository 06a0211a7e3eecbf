package amqp10

import "testing"

// BenchmarkReceive parses what a publish of 100 octets with a property is: a transfer, the sections of its message and its properties.
func BenchmarkReceive(b *testing.B) {
	message := AppendSection(AppendSection(nil, SectionProperties, List{"id-1"}), SectionData, make([]byte, 100))
	frame := AppendPerformative(nil, &Transfer{Handle: 1, DeliveryID: OptUint{Set: true, Value: 7}, DeliveryTag: []byte{0, 0, 0, 7}, MessageFormat: OptUint{Set: true}})
	frame = append(frame, message...)
	var t Transfer
	b.ReportAllocs()
	for b.Loop() {
		payload, is, err := ParseTransfer(frame, &t)
		if err != nil || !is {
			b.Fatal(err)
		}
		if m, err := Split(payload); err != nil || len(m.Data) != 100 {
			b.Fatal(err)
		}
	}
}
