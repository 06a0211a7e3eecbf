package testenv

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Authority signs certificates. The file CA contains its own certificate.
type Authority struct {
	CA   string
	Pool *x509.CertPool
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// NewAuthority creates an authority. Its file is in a directory of the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	template := template(t, pkix.Name{CommonName: "test authority"})
	template.IsCA, template.BasicConstraintsValid, template.KeyUsage = true, true, x509.KeyUsageCertSign
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	must(t, err)
	cert, err := x509.ParseCertificate(der)
	must(t, err)
	a := &Authority{CA: filepath.Join(t.TempDir(), "ca.pem"), Pool: x509.NewCertPool(), cert: cert, key: key}
	a.Pool.AddCert(cert)
	write(t, a.CA, "CERTIFICATE", der)
	return a
}

// Write writes a certificate for that subject, valid for this machine, and its key to
// cert.pem and key.pem in the directory, replacing existing files.
func (a *Authority) Write(t testing.TB, dir string, subject pkix.Name) (cert, key string) {
	t.Helper()
	private := newKey(t)
	template := template(t, subject)
	template.DNSNames, template.IPAddresses = []string{"localhost", subject.CommonName}, []net.IP{net.IPv4(127, 0, 0, 1)}
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, &private.PublicKey, a.key)
	must(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	must(t, err)
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	write(t, cert, "CERTIFICATE", der)
	write(t, key, "PRIVATE KEY", secret)
	return cert, key
}

// Client returns the configuration of a client that trusts the authority and has a
// certificate for the subject.
func (a *Authority) Client(t testing.TB, subject pkix.Name) *tls.Config {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(a.Write(t, t.TempDir(), subject))
	must(t, err)
	return &tls.Config{RootCAs: a.Pool, ServerName: "localhost", Certificates: []tls.Certificate{pair}}
}

func template(t testing.TB, subject pkix.Name) *x509.Certificate {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 62))
	must(t, err)
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(t, err)
	return key
}

// write replaces a file atomically: readers see the old file or the new one.
func write(t testing.TB, name, kind string, der []byte) {
	must(t, os.WriteFile(name+".new", pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600))
	must(t, os.Rename(name+".new", name))
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
