package operate

import (
	"context"

	"curfew/broker/definitions"
)

// Export returns all definitions, in RabbitMQ's format.
func (o Definitions) Export(_ context.Context, a Actor) (*definitions.Document, error) {
	if err := o.permit(&a, ExportDefinitions, ""); err != nil {
		return nil, err
	}
	return definitions.Export(o.Broker, o.Version), nil
}

// ExportVHost returns the definitions in one virtual host.
func (o Definitions) ExportVHost(_ context.Context, a Actor, vhost string) (*definitions.Document, error) {
	vh, err := o.vhost(&a, ExportVHostDefinitions, vhost)
	if err != nil {
		return nil, err
	}
	return definitions.ExportVHost(vh, o.Version), nil
}

// Import adds what a document holds. The actor gets all permissions in the virtual hosts that it makes. The log has what the
// import leaves out or cannot change. If ctx ends before the document is saved, nothing is changed.
func (o Definitions) Import(ctx context.Context, a Actor, d *definitions.Document) error {
	err := o.permit(&a, ImportDefinitions, "")
	var report definitions.Report
	if err == nil {
		report, err = definitions.Import(ctx, o.Broker, d, definitions.Options{User: a.Name, Progress: progress(ctx)})
	}
	return o.imported(a, "", report, err)
}

// ImportVHost adds what a document holds to one virtual host.
func (o Definitions) ImportVHost(ctx context.Context, a Actor, vhost string, d *definitions.Document) error {
	vh, err := o.vhost(&a, ImportDefinitions, vhost)
	var report definitions.Report
	if err == nil {
		report, err = definitions.Import(ctx, o.Broker, d, definitions.Options{VHost: vh.Name(), Progress: progress(ctx)})
	}
	return o.imported(a, vhost, report, err)
}

func (o Definitions) imported(a Actor, vhost string, report definitions.Report, err error) error {
	if err == nil {
		report.Log(o.log)
	}
	o.Record(a, ImportDefinitions, QueueName{VHost: vhost}, err)
	return err
}
