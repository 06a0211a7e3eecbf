package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"fmt"
	"slices"
	"strings"
)

// NameFrom is the part of a client certificate that is the user name (RabbitMQ:
// rabbitmq_auth_mechanism_ssl, ssl_cert_login_from).
type NameFrom string

const (
	// DistinguishedName is the whole subject, last part first: "CN=app,O=Example".
	DistinguishedName NameFrom = "distinguished_name"
	// CommonName is the subject's CN; several are joined by commas.
	CommonName NameFrom = "common_name"
	// SubjectAlternativeName is the first DNS name.
	SubjectAlternativeName NameFrom = "subject_alternative_name"
)

// Name returns the user name from a verified certificate, or false if it has none.
func (from NameFrom) Name(cert *x509.Certificate) (string, bool) {
	var name string
	switch from {
	case CommonName:
		name = strings.Join(commonNames(cert), ",")
	case SubjectAlternativeName:
		if len(cert.DNSNames) > 0 {
			name = cert.DNSNames[0]
		}
	default:
		name = Subject(cert)
	}
	return name, name != ""
}

func commonNames(cert *x509.Certificate) (names []string) {
	for _, part := range cert.Subject.Names {
		if part.Type.Equal(commonName) {
			names = append(names, fmt.Sprint(part.Value))
		}
	}
	return names
}

var commonName = asn1.ObjectIdentifier{2, 5, 4, 3}

var attributeNames = map[string]string{
	"2.5.4.3": "CN", "2.5.4.4": "SN", "2.5.4.5": "SERIALNUMBER", "2.5.4.6": "C", "2.5.4.7": "L", "2.5.4.8": "ST",
	"2.5.4.10": "O", "2.5.4.11": "OU", "2.5.4.12": "TITLE", "2.5.4.42": "GIVENNAME", "2.5.4.43": "INITIALS",
	"2.5.4.44": "GENERATIONQUALIFIER", "2.5.4.65": "PSEUDONYM", "1.2.840.113549.1.9.1": "EMAILADDRESS",
	"0.9.2342.19200300.100.1.25": "DC", "0.9.2342.19200300.100.1.1": "UID",
}

// Subject returns the subject in RabbitMQ's form: RFC 2253's order, RabbitMQ's attribute
// names.
func Subject(cert *x509.Certificate) string {
	var sequence pkix.RDNSequence
	if _, err := asn1.Unmarshal(cert.RawSubject, &sequence); err != nil {
		return ""
	}
	var parts []string
	for _, set := range slices.Backward(sequence) {
		var values []string
		for _, part := range set {
			values = append(values, attribute(part))
		}
		parts = append(parts, strings.Join(values, "+"))
	}
	return strings.Join(parts, ",")
}

func attribute(part pkix.AttributeTypeAndValue) string {
	name, known := attributeNames[part.Type.String()]
	if !known {
		name = part.Type.String()
	}
	return name + "=" + escape(fmt.Sprint(part.Value))
}

// escape escapes characters that have a meaning in that form, octet by octet.
func escape(value string) string {
	var b strings.Builder
	for i := range len(value) {
		c := value[i]
		switch {
		case i == 0 && (c == ' ' || c == '#'), i == len(value)-1 && c == ' ', strings.IndexByte(`"+,;<>\`, c) >= 0:
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < 32 || c >= 126:
			fmt.Fprintf(&b, `\%02X`, c)
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}
