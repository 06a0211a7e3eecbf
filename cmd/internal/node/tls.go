package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"go.uber.org/zap"

	"curfew/cmd/internal/settings"
)

// tlsFiles opens the certificate files, or returns nil if none are named.
func tlsFiles(c *settings.Settings, log *zap.Logger) (*certFiles, error) {
	if c.TLSCert == "" || c.TLSKey == "" {
		if c.TLSCert+c.TLSKey+c.AMQPSAddr+c.HTTPSAddr != "" || clientAuths[c.TLSClientAuth] != tls.NoClientCert {
			return nil, settings.Error{Err: errors.New("CURFEW_AMQPS_ADDR, CURFEW_HTTPS_ADDR and CURFEW_TLS_CLIENT_AUTH need CURFEW_TLS_CERT and CURFEW_TLS_KEY, both of them")}
		}
		return nil, nil
	}
	files, err := openCerts(certOptions{cert: c.TLSCert, key: c.TLSKey, clientCA: c.TLSClientCA, clientAuth: c.TLSClientAuth, log: log})
	if err != nil {
		return nil, fmt.Errorf("CURFEW_TLS_CERT, CURFEW_TLS_KEY, CURFEW_TLS_CLIENT_CA: %w", err)
	}
	return files, nil
}

// amqpListeners opens the port for AMQP and, if one is configured, the port for AMQP with TLS alone.
func amqpListeners(ctx context.Context, c *settings.Settings, files *certFiles) (_ []net.Listener, err error) {
	plain, err := listen(ctx, "CURFEW_AMQP_ADDR", c.AMQPAddr)
	if err != nil {
		return nil, err
	}
	if c.AMQPSAddr == "" {
		return []net.Listener{plain}, nil
	}
	secure, err := listen(ctx, "CURFEW_AMQPS_ADDR", c.AMQPSAddr)
	if err != nil {
		plain.Close()
		return nil, err
	}
	return []net.Listener{plain, tls.NewListener(secure, files.listenerConfig())}, nil
}

// httpsListener opens the port for HTTP with TLS, or returns nil if none is configured. Users of the API
// log in with a password, so clients are not asked for certificates.
func httpsListener(ctx context.Context, c *settings.Settings, log *zap.Logger) (net.Listener, error) {
	if c.HTTPSAddr == "" {
		return nil, nil
	}
	bare := *c
	bare.TLSClientAuth = "none"
	files, err := tlsFiles(&bare, log)
	if err != nil {
		return nil, err
	}
	l, err := listen(ctx, "CURFEW_HTTPS_ADDR", c.HTTPSAddr)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, files.listenerConfig()), nil
}
