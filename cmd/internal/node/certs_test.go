package node

import (
	"cmp"
	"crypto/tls"
	"crypto/x509/pkix"
	"io"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"curfew/integration/testenv"
)

// greetTLS connects a TLS client to a listener and returns the server's name and the client's
// error.
func greetTLS(t *testing.T, server, client *tls.Config) (name string, err error) {
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

// openedCerts opens files that are checked at every handshake.
func openedCerts(t *testing.T, o certOptions) *certFiles {
	t.Helper()
	o.log = cmp.Or(o.log, zap.NewNop())
	f, err := openCerts(o)
	require.NoError(t, err)
	f.every = 0
	return f
}

func TestCertsReload(t *testing.T) {
	ca, dir := testenv.NewAuthority(t), t.TempDir()
	core, logged := observer.New(zap.InfoLevel)
	cert, key := ca.Write(t, dir, pkix.Name{CommonName: "first"})
	f := openedCerts(t, certOptions{cert: cert, key: key, log: zap.New(core)})
	client := &tls.Config{RootCAs: ca.Pool, ServerName: "localhost"}
	name, err := greetTLS(t, f.listenerConfig(), client)
	require.NoError(t, err)
	assert.Equal(t, "first", name)

	ca.Write(t, dir, pkix.Name{CommonName: "second, and longer"})
	name, err = greetTLS(t, f.listenerConfig(), client)
	require.NoError(t, err)
	assert.Equal(t, "second, and longer", name)
	assert.Equal(t, 1, logged.FilterMessage("certificates reloaded").Len())

	require.NoError(t, os.WriteFile(key, []byte("half of it"), 0o600))
	for range 2 {
		name, err = greetTLS(t, f.listenerConfig(), client)
		require.NoError(t, err)
		assert.Equal(t, "second, and longer", name, "what cannot be used changes nothing")
	}
	assert.Equal(t, 1, logged.FilterLevelExact(zap.ErrorLevel).Len(), "and is logged once")
	require.NoError(t, os.Remove(key))
	ca.Write(t, dir, pkix.Name{CommonName: "third"})
	name, err = greetTLS(t, f.listenerConfig(), client)
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
	for mode, want := range map[string][3]bool{"none": {true, true, true}, "request": {true, true, false}, "require": {false, true, false}} {
		f := openedCerts(t, certOptions{cert: cert, key: key, clientCA: ca.CA, clientAuth: mode})
		for i, client := range []*tls.Config{without, with, foreign} {
			_, err := greetTLS(t, f.listenerConfig(), client)
			assert.Equal(t, want[i], err == nil, "%s %d: %v", mode, i, err)
		}
	}
}

func TestOldVersionsAreRefused(t *testing.T) {
	ca := testenv.NewAuthority(t)
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	f := openedCerts(t, certOptions{cert: cert, key: key})
	_, err := greetTLS(t, f.listenerConfig(), &tls.Config{RootCAs: ca.Pool, ServerName: "localhost", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	assert.Error(t, err)
}

func TestOpenSaysWhatIsMissing(t *testing.T) {
	ca := testenv.NewAuthority(t)
	cert, key := ca.Write(t, t.TempDir(), pkix.Name{CommonName: "server"})
	for text, o := range map[string]certOptions{
		"load none.pem":                         {cert: "none.pem", key: key},
		"authorities":                           {cert: cert, key: key, clientAuth: "require"},
		"has no certificate":                    {cert: cert, key: key, clientCA: key},
		`unknown client authentication "maybe"`: {cert: cert, key: key, clientAuth: "maybe"},
	} {
		o.log = zap.NewNop()
		_, err := openCerts(o)
		assert.ErrorContains(t, err, text)
	}
}
