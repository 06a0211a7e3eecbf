package telemetry

// parent is what the header traceparent of a message says (W3C: Trace Context, 3.2).
type parent struct {
	trace [16]byte
	span  [8]byte
	flags byte
}

// sampled says whether the publisher's spans are recorded.
func (p *parent) sampled() bool { return p.flags&1 != 0 }

const (
	// parentSize is that of version 00: version-traceid-parentid-flags, in lower case
	// hexadecimal.
	parentSize = 2 + 1 + 32 + 1 + 16 + 1 + 2
	// maxState is how much of a tracestate has to be passed on (W3C: Trace Context,
	// 3.3.1.5). A longer one is left out.
	maxState = 512
)

// parseParent reads a traceparent, which anybody may have written. Of a later version
// than 00 it takes what 00 has, as that demands. false: it is none.
func parseParent(text []byte) (p parent, ok bool) {
	var version, flags [1]byte
	if len(text) < parentSize || text[2] != '-' || text[35] != '-' || text[52] != '-' {
		return parent{}, false
	}
	ok = unhex(version[:], text[0:2]) && unhex(p.trace[:], text[3:35]) && unhex(p.span[:], text[36:52]) && unhex(flags[:], text[53:55])
	if !ok || version[0] == 0xff || p.trace == [16]byte{} || p.span == [8]byte{} {
		return parent{}, false
	}
	if len(text) > parentSize && (version[0] == 0 || text[parentSize] != '-') {
		return parent{}, false
	}
	p.flags = flags[0]
	return p, true
}

// unhex fills b with what text says in lower case hexadecimal.
func unhex(b, text []byte) bool {
	for i := range b {
		high, low := nibble(text[2*i]), nibble(text[2*i+1])
		if high > 15 || low > 15 {
			return false
		}
		b[i] = high<<4 | low
	}
	return true
}

func nibble(c byte) byte {
	switch {
	case '0' <= c && c <= '9':
		return c - '0'
	case 'a' <= c && c <= 'f':
		return c - 'a' + 10
	}
	return 0xff
}

// parseState returns the tracestate if it can be passed on: printable ASCII, 512
// characters at most. What the vendors in it mean is theirs.
func parseState(text []byte) string {
	if len(text) > maxState {
		return ""
	}
	for _, c := range text {
		if c < ' ' || c > '~' {
			return ""
		}
	}
	return string(text)
}
