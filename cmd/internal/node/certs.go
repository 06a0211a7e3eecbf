package node

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"
)

// clientAuths are the values of CURFEW_TLS_CLIENT_AUTH: what clients must present.
var clientAuths = map[string]tls.ClientAuthType{
	"":        tls.NoClientCert,
	"none":    tls.NoClientCert,               // no certificate is requested
	"request": tls.VerifyClientCertIfGiven,    // a certificate is requested, and verified if the client sends one
	"require": tls.RequireAndVerifyClientCert, // a handshake without a valid certificate fails
}

// certOptions names the files, which are all PEM.
type certOptions struct {
	cert, key  string // the server's certificate chain, leaf first, and its private key
	clientCA   string // the authorities that sign client certificates
	clientAuth string // a key of clientAuths
	log        *zap.Logger
}

// certCheckEvery is how often the files are checked for changes.
const certCheckEvery = time.Second

// certFiles makes TLS configurations from files that may be replaced while they are in use. Handshakes check the files at most
// once a second. If the files have changed, later handshakes use the new ones; open connections stay as they are. If the
// files cannot be read or do not fit together (because only half of them has been replaced, for example), the old ones stay
// in use, and that is logged once. The minimum is TLS 1.2. It is safe for concurrent use.
type certFiles struct {
	opts  certOptions
	log   *zap.Logger
	every time.Duration

	mu      sync.Mutex
	config  *tls.Config // replaced, never changed: session tickets of an old one are not accepted
	states  []certState // the files of config, or of the last attempt to load them
	checked time.Time
}

// certState distinguishes a file from the one that replaces it.
type certState struct {
	size     int64
	modified time.Time
}

// openCerts reads the files. The error names the file, or what is missing.
func openCerts(o certOptions) (*certFiles, error) {
	if _, ok := clientAuths[o.clientAuth]; !ok {
		return nil, fmt.Errorf("certs: unknown client authentication %q", o.clientAuth)
	}
	if clientAuths[o.clientAuth] != tls.NoClientCert && o.clientCA == "" {
		return nil, errors.New("certs: verifying clients requires a file with their authorities")
	}
	f := &certFiles{opts: o, log: o.log.Named("certs"), every: certCheckEvery, checked: time.Now()}
	f.states = f.stat()
	var err error
	f.config, err = f.load()
	return f, err
}

// listenerConfig returns the configuration for listeners. Each handshake uses the files as they are
// then.
func (f *certFiles) listenerConfig() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current(), nil },
	}
}

func (f *certFiles) current() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < f.every {
		return f.config
	}
	f.checked = time.Now()
	now := f.stat()
	if slices.Equal(now, f.states) {
		return f.config
	}
	f.states = now
	config, err := f.load()
	if err != nil {
		f.log.Error("the certificate files have changed and cannot be used; the previous ones stay in use", zap.Error(err))
		return f.config
	}
	f.log.Info("certificates reloaded", zap.String("file", f.opts.cert))
	f.config = config
	return config
}

// stat returns the state of the files. The state of a file that is missing or not named is zero.
func (f *certFiles) stat() (states []certState) {
	for _, name := range []string{f.opts.cert, f.opts.key, f.opts.clientCA} {
		var s certState
		if info, err := os.Stat(name); err == nil {
			s = certState{info.Size(), info.ModTime()}
		}
		states = append(states, s)
	}
	return states
}

func (f *certFiles) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.opts.cert, f.opts.key)
	if err != nil {
		return nil, fmt.Errorf("certs: load %s and %s: %w", f.opts.cert, f.opts.key, err)
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: clientAuths[f.opts.clientAuth],
	}
	if f.opts.clientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(f.opts.clientCA)
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certs: %s has no certificate", f.opts.clientCA)
	}
	return c, nil
}
