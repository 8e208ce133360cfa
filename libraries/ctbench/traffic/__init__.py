"""What is offered to the DUT: profiles, the generator interface and the generators behind it."""
