package access

import (
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/integration/testenv"
)

func TestNameOfACertificate(t *testing.T) {
	subject := pkix.Name{
		CommonName: "app", Organization: []string{`A, "B" +C`}, Country: []string{"DE"},
		ExtraNames: []pkix.AttributeTypeAndValue{
			{Type: asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 9, 1}, Value: "a@b"},
			{Type: asn1.ObjectIdentifier{1, 2, 3}, Value: " ü "},
		},
	}
	cert, err := x509.ParseCertificate(testenv.NewAuthority(t).Client(t, subject).Certificates[0].Certificate[0])
	require.NoError(t, err)
	cert.DNSNames = []string{"first", "second"}
	for from, want := range map[NameFrom]string{
		DistinguishedName:      `1.2.3=\ \C3\BC\ ,EMAILADDRESS=a@b,CN=app,O=A\, \"B\" \+C,C=DE`,
		CommonName:             "app",
		SubjectAlternativeName: "first",
	} {
		got, ok := from.Name(cert)
		assert.True(t, ok)
		assert.Equal(t, want, got)
	}
	bare, err := x509.ParseCertificate(testenv.NewAuthority(t).Client(t, pkix.Name{}).Certificates[0].Certificate[0])
	require.NoError(t, err)
	_, ok := DistinguishedName.Name(bare)
	assert.False(t, ok)
}
