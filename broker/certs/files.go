package certs

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

// ClientAuth says what is asked of clients.
type ClientAuth string

const (
	// None: no certificate.
	None ClientAuth = "none"
	// Request: a certificate is asked for, and verified if there is one.
	Request ClientAuth = "request"
	// Require: a handshake without a valid certificate fails.
	Require ClientAuth = "require"
)

var clientAuths = map[ClientAuth]tls.ClientAuthType{
	"": tls.NoClientCert, None: tls.NoClientCert, Request: tls.VerifyClientCertIfGiven, Require: tls.RequireAndVerifyClientCert,
}

// Options name the files, PEM all of them.
type Options struct {
	Cert, Key  string // the server's chain, leaf first, and its private key
	ClientCA   string // authorities whose certificates clients may have
	ClientAuth ClientAuth
	Log        *zap.Logger
}

// checkEvery is how long what was found in the files is taken for what is there.
const checkEvery = time.Second

// Files keep the configuration that the files make. Safe for concurrent use.
type Files struct {
	opts  Options
	log   *zap.Logger
	every time.Duration

	mu      sync.Mutex
	config  *tls.Config // replaced, never changed: tickets of an old one are not taken
	seen    []fileState // what config, or the last attempt at one, was made of
	checked time.Time
}

// fileState tells a file from the one that replaces it.
type fileState struct {
	size     int64
	modified time.Time
}

// Open reads the files. The error names the file, or what is missing.
func Open(o Options) (*Files, error) {
	if o.Log == nil {
		o.Log = zap.NewNop()
	}
	if _, ok := clientAuths[o.ClientAuth]; !ok {
		return nil, fmt.Errorf("certs: client authentication %q is not known", o.ClientAuth)
	}
	if clientAuths[o.ClientAuth] != tls.NoClientCert && o.ClientCA == "" {
		return nil, errors.New("certs: to verify clients takes a file of their authorities")
	}
	f := &Files{opts: o, log: o.Log.Named("certs"), every: checkEvery, checked: time.Now()}
	f.seen = f.look()
	var err error
	f.config, err = f.load()
	return f, err
}

// Config is for listeners. Each handshake gets what is in the files by then.
func (f *Files) Config() *tls.Config {
	return &tls.Config{
		MinVersion:         tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) { return f.current(), nil },
	}
}

func (f *Files) current() *tls.Config {
	f.mu.Lock()
	defer f.mu.Unlock()
	if time.Since(f.checked) < f.every {
		return f.config
	}
	f.checked = time.Now()
	now := f.look()
	if slices.Equal(now, f.seen) {
		return f.config
	}
	f.seen = now
	config, err := f.load()
	if err != nil {
		f.log.Error("the certificate files have changed and cannot be used; those from before stay in use", zap.Error(err))
		return f.config
	}
	f.log.Info("certificates reloaded", zap.String("file", f.opts.Cert))
	f.config = config
	return config
}

func (f *Files) names() []string {
	names := []string{f.opts.Cert, f.opts.Key}
	if f.opts.ClientCA != "" {
		names = append(names, f.opts.ClientCA)
	}
	return names
}

// look returns the state of the files; that of one that is not there is zero.
func (f *Files) look() (states []fileState) {
	for _, name := range f.names() {
		var s fileState
		if info, err := os.Stat(name); err == nil {
			s = fileState{info.Size(), info.ModTime()}
		}
		states = append(states, s)
	}
	return states
}

func (f *Files) load() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(f.opts.Cert, f.opts.Key)
	if err != nil {
		return nil, fmt.Errorf("certs: load %s and %s: %w", f.opts.Cert, f.opts.Key, err)
	}
	c := &tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: clientAuths[f.opts.ClientAuth],
	}
	if f.opts.ClientCA == "" {
		return c, nil
	}
	pem, err := os.ReadFile(f.opts.ClientCA)
	if err != nil {
		return nil, fmt.Errorf("certs: %w", err)
	}
	c.ClientCAs = x509.NewCertPool()
	if !c.ClientCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("certs: %s has no certificate", f.opts.ClientCA)
	}
	return c, nil
}
