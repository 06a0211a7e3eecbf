package management

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"curfew/broker/server"
)

func TestAddTLS(t *testing.T) {
	plain := &tls.ConnectionState{Version: tls.VersionTLS13, CipherSuite: tls.TLS_AES_128_GCM_SHA256}
	o := object{}
	addTLS(o, plain)
	assert.Equal(t, object{"ssl": true, "ssl_protocol": "TLS 1.3", "ssl_cipher": "TLS_AES_128_GCM_SHA256"}, o)
	from := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	plain.PeerCertificates = []*x509.Certificate{{
		Subject: pkix.Name{CommonName: "app"}, Issuer: pkix.Name{CommonName: "ca"}, NotBefore: from, NotAfter: from.AddDate(1, 0, 0),
	}}
	addTLS(o, plain)
	assert.Equal(t, []any{"CN=app", "CN=ca", "2026-01-02T03:04:05Z - 2027-01-02T03:04:05Z"}, []any{o["peer_cert_subject"], o["peer_cert_issuer"], o["peer_cert_validity"]})
}

func TestConnectionState(t *testing.T) {
	for want, c := range map[string]server.ConnectionInfo{
		"running": {}, "flow": {Flow: true}, "blocked": {Blocked: true, Flow: true},
	} {
		assert.Equal(t, want, (&c).State())
	}
}

func TestCertificateCheck(t *testing.T) {
	a := newTestAPI(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: a.Now().Add(10 * day)}, &x509.Certificate{}, &key.PublicKey, key)
	require.NoError(t, err)
	a.CertificateFile = filepath.Join(t.TempDir(), "cert.pem")
	check := func(within string) int {
		return ask(a.Handler(), "management", get, "/api/health/checks/certificate-expiration/"+within).Code
	}
	assert.Equal(t, 503, check("1/days"), "it cannot be read")
	require.NoError(t, os.WriteFile(a.CertificateFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	assert.Equal(t, 200, check("1/weeks"))
	assert.Equal(t, 503, check("11/days"))
	assert.Equal(t, 400, check("0/days"))
}
