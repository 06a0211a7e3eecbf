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
	secure, err := listenTLS(ctx, "CURFEW_AMQPS_ADDR", c.AMQPSAddr, files)
	if err != nil {
		plain.Close()
		return nil, err
	}
	if secure == nil {
		return []net.Listener{plain}, nil
	}
	return []net.Listener{plain, secure}, nil
}

// listenTLS opens a port for TLS alone, or returns nil if none is configured.
func listenTLS(ctx context.Context, variable, addr string, files *certFiles) (net.Listener, error) {
	if addr == "" {
		return nil, nil
	}
	l, err := listen(ctx, variable, addr)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, files.listenerConfig()), nil
}
