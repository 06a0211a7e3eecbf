package certs

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/asn1"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/integration/testenv"
)

// greet connects a TLS client to a listener and returns the server's name and the client's
// error.
func greet(t *testing.T, server, client *tls.Config) (name string, err error) {
	t.Helper()
	l, err := tls.Listen("tcp", "127.0.0.1:0", server)
	require.NoError(t, err)
	defer l.Close()
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		io.WriteString(c, "x")
	}()
	c, err := tls.Dial("tcp", l.Addr().String(), client)
	if err != nil {
		return "", err
	}
	defer c.Close()
	_, err = c.Read(make([]byte, 1)) // with TLS 1.3 only now the server has judged the client
	return c.ConnectionState().PeerCertificates[0].Subject.CommonName, err
}

// opened opens files that are checked at every handshake.
func opened(t *testing.T, o Options) *Files {
	t.Helper()
	f, err := Open(o)
	require.NoError(t, err)
	f.every = 0
	return f
}

func TestReload(t *testing.T) {
	ca, dir := testenv.NewAuthority(t), t.TempDir()
	core, logged := observer.New(zap.InfoLevel)
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "first"})
	f := opened(t, Options{Cert: cert, Key: key, Log: zap.New(core)})
	client := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	name, err := greet(t, f.Config(), client)
	require.NoError(t, err)
	assert.Equal(t, "first", name)

	ca.Write(t, dir, pkix.Name{CommonName: "second, and longer"})
	name, err = greet(t, f.Config(), client)
	require.NoError(t, err)
	assert.Equal(t, "second, and longer", name)
	assert.Equal(t, 1, logged.FilterMessage("certificates reloaded").Len())

	require.NoError(t, os.WriteFile(key, []byte("half of it"), 0o600))
	for range 2 {
		name, err = greet(t, f.Config(), client)
		require.NoError(t, err)
		assert.Equal(t, "second, and longer", name, "what cannot be used changes nothing")
	}
	assert.Equal(t, 1, logged.FilterLevelExact(zap.ErrorLevel).Len(), "and is logged once")
	require.NoError(t, os.Remove(key))
	ca.Write(t, dir, pkix.Name{CommonName: "third"})
	name, err = greet(t, f.Config(), client)
	require.NoError(t, err)
	assert.Equal(t, "third", name)
}

func TestClientAuth(t *testing.T) {
	ca, other, dir := testenv.NewAuthority(t), testenv.NewAuthority(t), t.TempDir()
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "server"})
	without := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	with := ca.Client(t, pkix.Name{CommonName: "app"})
	foreign := other.Client(t, pkix.Name{CommonName: "app"})
	foreign.RootCAs = ca.Pool
	foreign.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) { return &foreign.Certificates[0], nil }
	for mode, want := range map[ClientAuth][3]bool{None: {true, true, true}, Request: {true, true, false}, Require: {false, true, false}} {
		f := opened(t, Options{Cert: cert, Key: key, ClientCA: ca.CA, ClientAuth: mode})
		for i, client := range []*tls.Config{without, with, foreign} {
			_, err := greet(t, f.Config(), client)
			assert.Equal(t, want[i], err == nil, "%s %d: %v", mode, i, err)
		}
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	ca := testenv.NewAuthority(t)
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	f := opened(t, Options{Cert: cert, Key: key})
	_, err := greet(t, f.Config(), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	assert.Error(t, err)
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	ca := testenv.NewAuthority(t)
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	for text, o := range map[string]Options{
		"load none.pem":                         {Cert: "none.pem", Key: key},
		"authorities":                           {Cert: cert, Key: key, ClientAuth: Require},
		"has no certificate":                    {Cert: cert, Key: key, ClientCA: key},
		`unknown client authentication "maybe"`: {Cert: cert, Key: key, ClientAuth: "maybe"},
	} {
		_, err := Open(o)
		assert.ErrorContains(t, err, text)
	}
}

func TestName(t *testing.T) {
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
