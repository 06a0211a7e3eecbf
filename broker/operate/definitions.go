package operate

import (
	"context"

	"curfew/broker/definitions"
)

// ExportAll returns the definitions in one virtual host, "" for all definitions, in RabbitMQ's format.
func (o *Operations) ExportAll(_ context.Context, a Actor, vhost string) (*definitions.Document, error) {
	if vhost == "" {
		if err := o.permit(&a, ExportDefinitions, ""); err != nil {
			return nil, err
		}
		return definitions.Export(o.Broker, o.Version), nil
	}
	vh, err := o.vhost(&a, ExportVHostDefinitions, vhost)
	if err != nil {
		return nil, err
	}
	return definitions.ExportVHost(vh, o.Version), nil
}

// ImportAll adds what a document holds, to one virtual host or, for "", to all; then the actor gets all permissions in the virtual hosts that it makes. The
// log has what the import leaves out or cannot change. If ctx ends before the document is saved, nothing is changed.
func (o *Operations) ImportAll(ctx context.Context, a Actor, vhost string, d *definitions.Document) error {
	var report definitions.Report
	err := o.permit(&a, ImportDefinitions, "")
	options := definitions.Options{VHost: vhost, Progress: Note(ctx)}
	if vhost == "" {
		options.User = a.Name
	} else if err == nil {
		_, err = o.vhost(&a, ImportDefinitions, vhost)
	}
	if err == nil {
		report, err = definitions.Import(ctx, o.Broker, d, options)
	}
	if err == nil {
		report.Log(o.log)
	}
	o.Record(a, ImportDefinitions, QueueName{VHost: vhost}, err)
	return err
}
