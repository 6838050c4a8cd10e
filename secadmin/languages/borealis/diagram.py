Diagram = parse_borealis = None
