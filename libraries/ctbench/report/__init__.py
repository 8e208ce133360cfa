"""What people see of records. Reads nothing but records."""
