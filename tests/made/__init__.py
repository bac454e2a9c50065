"""What tests share: small schemes, releases, images, records and evidence."""
