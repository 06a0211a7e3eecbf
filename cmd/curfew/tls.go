package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"go.uber.org/zap"

	"curfew/broker/certs"
)

// tlsFiles opens the certificate files, or returns nil if none are named. Every TLS listener
// shares them.
func tlsFiles(c *config, log *zap.Logger) (*certs.Files, error) {
	if c.TLSCert == "" && c.TLSKey == "" {
		if c.AMQPSAddr != "" {
			return nil, usageError{errors.New("CURFEW_AMQPS_ADDR needs CURFEW_TLS_CERT and CURFEW_TLS_KEY")}
		}
		return nil, nil
	}
	files, err := certs.Open(certs.Options{
		Cert: c.TLSCert, Key: c.TLSKey, ClientCA: c.TLSClientCA, ClientAuth: certs.ClientAuth(c.TLSClientAuth), Log: log,
	})
	if err != nil {
		return nil, fmt.Errorf("CURFEW_TLS_CERT, CURFEW_TLS_KEY, CURFEW_TLS_CLIENT_CA: %w", err)
	}
	return files, nil
}

// amqpListeners opens the port for AMQP and, if there is one, the port for it with TLS.
func amqpListeners(ctx context.Context, c *config, log *zap.Logger) (_ []net.Listener, err error) {
	files, err := tlsFiles(c, log)
	if err != nil {
		return nil, err
	}
	plain, err := listen(ctx, "CURFEW_AMQP_ADDR", c.AMQPAddr)
	if err != nil || c.AMQPSAddr == "" {
		return []net.Listener{plain}, err
	}
	secure, err := listen(ctx, "CURFEW_AMQPS_ADDR", address(c.AMQPSAddr))
	if err != nil {
		plain.Close()
		return nil, err
	}
	return []net.Listener{plain, tls.NewListener(secure, files.Config())}, nil
}
